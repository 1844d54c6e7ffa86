# frozen_string_literal: true

# The boot archive of a thawed process: files that the image lacks are loaded from it, as in an ordinary start by `snapboot
# run`.
#
# Used only for images of the store, whose request names the file +archive+ that switches an archive on. Nothing is opened or
# read before Ruby loads a file after the thaw. The hook is `RubyVM::InstructionSequence.load_iseq`, which Ruby calls for the
# code of each file before it compiles it: its frame is gone when the file runs, so no backtrace shows it, as it would show a
# `require` of ours. The archive then replaces this method with its own.
class BootArchive
  CODE = RubyVM::InstructionSequence
  # At least this many files are compiled before the archive is opened.
  FEW = 2
  # The method of Ruby and RubyGems, before the program can change it.
  REQUIRE = Kernel.instance_method(Kernel.private_method_defined?(:gem_original_require) ? :gem_original_require : :require)
  # By identity, see ruby/lib/snapboot/archive.rb.
  LATER = {}.compare_by_identity.tap { |mask| mask[Object] = :never }.freeze

  # +request+: of the image. +load_report+: its LoadReport.
  def initialize(request, load_report)
    @library = File.dirname(request.value("archive"), 2)
    @script = request.value("script")
    @load_report = load_report
    @loaded = 0
  end

  # Call right before the freeze. Does nothing if the program has a provider of code of its own, such as an archive.
  def settle
    return if CODE.respond_to?(:load_iseq)

    def CODE.load_iseq(path) # rubocop:disable Lint/NestedMethodDefinition -- leaves no block's frame in backtraces
      Ractor.current == Ractor.main ? Process.instance_variable_get(:@__snapboot__).archive.code_of(path) : nil
    end
    @waits = true
  end

  # Called when Ruby is about to load this file. Returns its code, or nil if Ruby should compile it.
  def code_of(path)
    return unless @waits && @load_report.folder && (@loaded += 1) > FEW

    @waits = false
    Thread.handle_interrupt(LATER) { open }
    CODE.load_iseq(path) if CODE.respond_to?(:load_iseq)
  end

  private

  def open
    CODE.singleton_class.__send__(:remove_method, :load_iseq)
    REQUIRE.bind_call(Object.new, "#{@library}/archive.rb")
    return unless Snapboot::Archive.set_up(@script, @load_report.folder)

    REQUIRE.bind_call(Object.new, "#{@library}/setup.rb")
    @load_report.listen_to_archive(%r{\A#{Regexp.escape(@library)}/|/libsnapboot_ruby\.so\z})
  rescue StandardError, ScriptError => e
    warn("snapboot: no archive: #{e.message} (#{e.class})") if ENV["SNAPBOOT_LOG"] == "1"
  end
end
