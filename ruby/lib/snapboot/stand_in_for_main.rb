# frozen_string_literal: true

# Takes the place of the program's main script: while freezing a bare interpreter or -e, Ruby is started on this file. After
# a thaw the front end replaces the text that Ruby reads from it with the code or script of this start. The text below runs
# only if the front end could not. The file's name is unique: code that holds it in a string has read $0 (Early).
abort "snapboot: this Ruby did not let the front end take over the main script (#{RUBY_DESCRIPTION})"
