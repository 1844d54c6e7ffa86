# frozen_string_literal: true

# Entry of the Ruby front end. `snapboot freeze` starts `ruby -r THIS_FILE OPTIONS -r .../last_library.rb SCRIPT`.
#
# The front end lives in an anonymous module: its files are evaluated, not required, so the frozen program sees none of its
# constants and features. It uses only core classes: the program would find any other library already loaded without having
# required it.
#
# Evaluated files see the local variables here. No name of these is used there: Prism of Ruby 3.4 would compile code that
# crashes.
front_end = Module.new
load_file = lambda do |front_end_name, front_end_text = nil|
  front_end_file = "#{__dir__}/front_end/#{front_end_name}.rb"
  front_end.module_eval(front_end_text || File.read(front_end_file, encoding: Encoding::UTF_8), front_end_file)
end
%w[channel request report object_header title settings compilers command_line standard_input main_syntax main_script
   prism_script stdio environment seeding randomness explained context exit origins kind_questions inputs wrappers kept_gems
   gem_lists bundle_lists reads early times preload recipes process_attributes locale lost_threads real_secrets
   in_child renewed_texts start_form evidence search_path chosen_constants choice application_here
   heap freeze_run].each { |front_end_part| load_file.call(front_end_part) }
front_end.module_eval { self::FreezeRun.new(__FILE__, load_file).start }
