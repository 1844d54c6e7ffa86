# frozen_string_literal: true

module Snapboot
  module Archive
    module Pure
      # Checksums (CRC-32) and digests (SHA-256), each by the cheapest means here. TruffleRuby takes two seconds to load zlib
      # and half a second for digest while it is interpreted; there, and on JRuby, Java's are available.
      module Sums
        # For those without their own access to the bytes of a file.
        module OfBytes
          # Returns an object that computes the CRC-32 of a part of an open file, with `crc32(offset, size)`; or nil if the
          # caller reads the bytes anyway.
          def of_file(_file)
            nil
          end
        end

        # From Ruby's own extensions.
        module FromExtensions
          extend OfBytes

          class << self
            # Loads them now, before the program can change `require` and its search.
            def prepare
              require "zlib"
              load_digest
              self
            end

            # The CRC-32 of a String.
            def crc32(bytes)
              ::Zlib.crc32(bytes)
            end

            # The SHA-256 of a String: 32 bytes.
            def sha256(bytes)
              load_digest unless @sha256
              @sha256.digest(bytes)
            end

            private

            # "digest" alone would load SHA-256 on first use.
            def load_digest
              require "digest"
              @sha256 = ::Digest::SHA256
            end
          end
        end

        # From Java's library, on JRuby.
        module FromJRuby
          extend OfBytes

          class << self
            def crc32(bytes)
              sum = java.util.zip.CRC32.new
              sum.update(bytes.to_java_bytes)
              sum.get_value
            end

            def sha256(bytes)
              digest = java.security.MessageDigest.get_instance("SHA-256")
              digest.update(bytes.to_java_bytes)
              String.from_java_bytes(digest.digest).b
            end
          end
        end

        # From Java's library, on a TruffleRuby that runs on a JVM and may access it.
        module FromHost
          class << self
            # Whether that is so here.
            def available?
              @crc = ::Java.type("java.util.zip.CRC32")
              true
            rescue StandardError
              false
            end

            def crc32(bytes)
              sum = @crc.new
              sum.update(to_host(bytes))
              sum.getValue
            end

            def sha256(bytes)
              digest = ::Java.type("java.security.MessageDigest").getInstance("SHA-256")
              digest.update(to_host(bytes))
              digest.digest.to_a.pack("c*")
            end

            def of_file(file)
              HostFile.new(file, @crc)
            end

            # Returns the ctime of a path (nanoseconds), in a fifth of the time of File.ctime here; nil if nothing exists
            # there.
            def ctime(path)
              @files ||= ::Java.type("java.nio.file.Files")
              @paths ||= ::Java.type("java.nio.file.Paths")
              @unit ||= ::Java.type("java.util.concurrent.TimeUnit").NANOSECONDS
              @files.getAttribute(@paths.get(path), "unix:ctime").to(@unit)
            rescue StandardError
              nil
            end

            private

            # Returns the bytes as a ByteBuffer: as a text in a one-byte encoding they can cross the border.
            def to_host(bytes)
              @latin ||= ::Java.type("java.nio.charset.StandardCharsets").ISO_8859_1
              @latin.encode(bytes.dup.force_encoding(Encoding::ISO_8859_1))
            end
          end

          # An open file, opened again by Java, so that the bytes need not cross the border.
          class HostFile
            def initialize(file, crc)
              @crc = crc
              @file = ::Java.type("java.io.RandomAccessFile").new("/proc/self/fd/#{file.fileno}", "r")
              @array = ::Java.type("byte[]")
            end

            def crc32(offset, size)
              bytes = @array.new(size)
              @file.seek(offset)
              @file.readFully(bytes)
              sum = @crc.new
              sum.update(bytes)
              sum.getValue
            end

            def close
              @file.close
            end
          end
        end

        # From a loop, if nothing else is cheap: a TruffleRuby without a JVM, which compiles it.
        module FromLoop
          extend OfBytes

          class << self
            def crc32(bytes)
              return ::Zlib.crc32(bytes) if defined?(::Zlib)

              table = @table ||= make_table
              sum = 0xffffffff
              at = 0
              size = bytes.bytesize
              while at < size
                sum = table[(sum ^ bytes.getbyte(at)) & 255] ^ (sum >> 8)
                at += 1
              end
              sum ^ 0xffffffff
            end

            def sha256(bytes)
              FromExtensions.sha256(bytes)
            end

            private

            def make_table
              (0..255).map do |byte|
                8.times.reduce(byte) { |sum, _| sum.odd? ? 0xedb88320 ^ (sum >> 1) : sum >> 1 }
              end
            end
          end
        end

        # Returns the cheapest of them.
        def self.cheapest
          case RUBY_ENGINE
          when "jruby"
            require "java"
            FromJRuby
          when "truffleruby" then FromHost.available? ? FromHost : FromLoop
          else FromExtensions.prepare
          end
        end
      end
    end
  end
end
