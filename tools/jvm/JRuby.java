import org.jruby.Main;
import org.jruby.RubyInstanceConfig;

/** JRuby as a command: org.jruby.Main, but several times in one JVM. */
final class JRuby {
    public static void main(String[] words) throws Exception {
        Boots.main(words, JRuby::boot);
    }

    private static int boot(Boots.CommandLine line) {
        RubyInstanceConfig config = new RubyInstanceConfig();
        config.setCurrentDirectory(line.directory);
        config.setHardExit(false);
        var words = new java.util.ArrayList<String>();
        for (String directory : line.loadPath) words.addAll(java.util.List.of("-I", directory));
        for (String feature : line.features) words.add("-r" + feature);
        if (!line.gems) words.add("--disable-gems");
        if (line.warnings) words.add("-w");
        if (line.kind.equals("INLINE")) words.addAll(java.util.List.of("-e", line.program));
        else words.add(line.program);
        words.addAll(java.util.List.of(line.arguments));
        return new Main(config).run(words.toArray(new String[0])).getStatus();
    }
}
