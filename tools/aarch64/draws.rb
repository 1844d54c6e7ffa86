# frozen_string_literal: true

# Random numbers of all kinds, one a line: no two starts may have one in common.
require "openssl"
require "securerandom"
require "tmpdir"
puts rand, Random.rand, Random.new.rand, Random.urandom(8).unpack1("H*"), SecureRandom.hex(8), SecureRandom.uuid
puts OpenSSL::Random.random_bytes(8).unpack1("H*"), Array.new(30) { _1 }.shuffle.inspect
