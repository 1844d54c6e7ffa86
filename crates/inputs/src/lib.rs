//! What an image depends on: recording it and checking it.
