# frozen_string_literal: true

# Switches Bootsnap on for a program that does not know it, with -r; BOOTSNAP_CACHE_DIR says where its cache is.

gem "bootsnap" # and msgpack with it, which is not on the load path otherwise
require "bootsnap/setup"
