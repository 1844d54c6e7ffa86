//! Text from elsewhere, such as the name of a file, without what a terminal would obey.

/// A text on one line: control characters become question marks.
pub fn harmless(text: &str) -> String {
    text.chars().map(|letter| if is_harmful(letter) { '?' } else { letter }).collect()
}

/// Like [`harmless`], for text of several lines: everything that is printed goes through this.
pub fn harmless_lines(text: &str) -> String {
    let is_layout = |letter: char| letter == '\n' || letter == '\t';
    text.chars().map(|letter| if is_harmful(letter) && !is_layout(letter) { '?' } else { letter }).collect()
}

/// Whether a terminal interprets a character, or reorders others for it (Unicode's bidirectional controls).
pub fn is_harmful(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_obey_nothing_that_is_printed() {
        let text = "a\x1b[2J\n\tb\u{9b}c\u{202e}d\re\x07";
        assert_eq!(harmless_lines(text), "a?[2J\n\tb?c?d?e?");
        assert_eq!(harmless(text), "a?[2J??b?c?d?e?");
    }
}
