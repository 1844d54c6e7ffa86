# frozen_string_literal: true

# Stands where the program's main script will be: while freezing a bare interpreter or -e, Ruby is started on this file,
# and after a thaw the front end swaps what Ruby reads from it for the code or script of this start. Its text runs only
# if the front end could not take part. Its name is nobody else's: who has it in a string has read $0
# (Early).
abort "snapboot: this Ruby did not let the front end take over the main script (#{RUBY_DESCRIPTION})"
