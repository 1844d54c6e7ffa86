//! Images in front of installed commands.
