import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The command line of a Ruby on the JVM: one boot, or with --boots one after the other in the same JVM, each in a Ruby of its own.
 *
 * <pre>
 *   [-I DIRECTORY] [-r FEATURE] [-w] [--disable-gems] [-e CODE | FILE] [ARGUMENT...]
 *   --boots     each line of standard input is a boot: DIRECTORY, then arguments as above, tab by tab.
 *               After each, a zero byte, "boot ended " and the exit status follow on both standard streams.
 * </pre>
 */
final class Boots {
    /** Starts one Ruby, runs it to its end and returns its exit status. */
    interface Runtime {
        int boot(CommandLine line) throws Exception;
    }

    /** What one boot was asked for. `directory` is absolute; `kind` says what `program` is: FILE or INLINE. */
    static final class CommandLine {
        String directory;
        final List<String> loadPath = new ArrayList<>();
        final List<String> features = new ArrayList<>();
        boolean warnings;
        boolean gems = true;
        String kind = "FILE";
        String program;
        String[] arguments;

        CommandLine(String directory, List<String> words) {
            this.directory = directory;
            int at = 0;
            for (; at < words.size() && words.get(at).startsWith("-"); at++) {
                String word = words.get(at);
                String option = word.substring(0, Math.min(2, word.length()));
                if (word.equals("-w") || word.equals("--disable-gems")) {
                    if (word.equals("-w")) warnings = true;
                    else gems = false;
                    continue;
                }
                String value = word.length() > 2 ? word.substring(2) : at + 1 < words.size() ? words.get(++at) : null;
                if (value == null) throw new IllegalArgumentException(word + " needs a value");
                switch (option) {
                    case "-I" -> loadPath.add(value);
                    case "-r" -> features.add(value);
                    case "-e" -> {
                        kind = "INLINE";
                        program = program == null ? value : program + "\n" + value;
                    }
                    default -> throw new IllegalArgumentException("unknown option " + word + "; known: -I -r -w -e --disable-gems --boots");
                }
            }
            if (program == null) {
                if (at == words.size()) throw new IllegalArgumentException("no program: name a file, or use -e");
                program = words.get(at++);
            }
            arguments = words.subList(at, words.size()).toArray(new String[0]);
        }
    }

    static void main(String[] words, Runtime runtime) throws Exception {
        if (words.length == 1 && words[0].equals("--boots")) {
            serve(runtime);
            System.exit(0);
        }
        System.exit(runtime.boot(new CommandLine(System.getProperty("user.dir"), Arrays.asList(words))));
    }

    private static void serve(Runtime runtime) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            List<String> words = Arrays.asList(line.split("\t"));
            int status;
            try {
                status = runtime.boot(new CommandLine(words.get(0), words.subList(1, words.size())));
            } catch (Exception error) {
                error.printStackTrace();
                status = 70;
            }
            for (var stream : List.of(System.out, System.err)) {
                stream.print("\0boot ended " + status + "\n");
                stream.flush();
            }
        }
    }
}
