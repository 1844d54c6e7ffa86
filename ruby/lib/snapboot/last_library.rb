# frozen_string_literal: true

# Tells the front end that Ruby has loaded the libraries of the command line: `snapboot freeze` starts
# `ruby -r .../freeze.rb OPTIONS -r THIS_FILE -r snapboot-main-script SCRIPT`, so the front end sees what the user's own `-r`
# libraries do. The last feature does not exist (see ignore_last_feature in front_end/freeze_run.rb).
Process.instance_variable_get(:@__snapboot__).take_main_script(__FILE__)
