# frozen_string_literal: true

worker_processes 4
preload_app true
