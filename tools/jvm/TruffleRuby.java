import org.graalvm.polyglot.Context;
import org.graalvm.polyglot.Engine;
import org.graalvm.polyglot.Source;

/**
 * TruffleRuby as a command, over the polyglot API: its own launcher is part of the standalone distribution only.
 *
 * What is evaluated is what that launcher evaluates, so $0, at_exit, uncaught exceptions and exit status are as there.
 */
final class TruffleRuby {
    private static final Source BOOT =
        Source.newBuilder("ruby", "-> argc, argv, kind, program { Truffle::Boot.main(argc, argv, kind, program) }", "main_boot_source")
            .internal(true).buildLiteral();

    public static void main(String[] words) throws Exception {
        // Sources are parsed once for all boots of this JVM.
        Engine engine = Engine.newBuilder("ruby").option("engine.WarnInterpreterOnly", "false").build();
        Boots.main(words, line -> boot(engine, line));
    }

    private static int boot(Engine engine, Boots.CommandLine line) {
        Context.Builder builder = Context.newBuilder("ruby").engine(engine).allowAllAccess(true).allowExperimentalOptions(true)
            .option("ruby.embedded", "false")
            .option("ruby.working-directory", line.directory)
            .option("ruby.load-paths", String.join(",", line.loadPath))
            .option("ruby.required-libraries", String.join(",", line.features))
            .arguments("ruby", line.arguments);
        if (!line.gems) builder.option("ruby.rubygems", "false").option("ruby.did-you-mean", "false");
        if (line.warnings) builder.option("ruby.verbose", "true");
        try (Context context = builder.build()) {
            return context.eval(BOOT).execute(0, 0L, line.kind, line.program).asInt();
        }
    }
}
