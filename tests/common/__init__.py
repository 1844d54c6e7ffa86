"""What tests of several folders share: freezing and running programs, both languages, image files, terminals."""
