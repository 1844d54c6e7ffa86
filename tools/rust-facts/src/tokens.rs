//! What the tokens of macro calls and attributes contain, which are no part of the syntax tree.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A piece of a token stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// An identifier.
    Identifier(String),
    /// Names with `::` between them.
    Path(Vec<String>),
    /// The text of a literal of text or bytes.
    Literal(String),
    /// The name of a function that is defined.
    Function(String),
}

/// All pieces, in their order.
pub fn pieces(tokens: TokenStream) -> Vec<Piece> {
    let mut found = Vec::new();
    collect(tokens, &mut found);
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<Piece>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut path: Vec<String> = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                found.push(Piece::Identifier(name.clone()));
                if index > 0 && is_ident(&tokens[index - 1], "fn") {
                    found.push(Piece::Function(name.clone()));
                }
                if !continues(&tokens[..index]) {
                    path.clear();
                }
                path.push(name);
                if path.len() > 1 && !goes_on(&tokens[index + 1..]) {
                    found.push(Piece::Path(std::mem::take(&mut path)));
                }
            }
            TokenTree::Group(group) => {
                // The text of a comment is no literal of the program.
                let is_doc = group.delimiter() == Delimiter::Bracket
                    && group.stream().into_iter().next().is_some_and(|first| is_ident(&first, "doc"));
                if !is_doc {
                    collect(group.stream(), found);
                }
            }
            TokenTree::Literal(literal) => {
                found.extend(
                    syn::parse_str(&literal.to_string()).ok().and_then(|lit| text_of(&lit)).map(Piece::Literal),
                );
            }
            TokenTree::Punct(_) => {}
        }
    }
}

/// The text of a literal of text or bytes.
pub fn text_of(literal: &syn::Lit) -> Option<String> {
    match literal {
        syn::Lit::Str(text) => Some(text.value()),
        syn::Lit::ByteStr(bytes) => Some(String::from_utf8_lossy(&bytes.value()).into_owned()),
        syn::Lit::CStr(text) => Some(text.value().to_string_lossy().into_owned()),
        _ => None,
    }
}

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

fn begins_with_colons(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(one), TokenTree::Punct(two), ..] if one.as_char() == ':' && two.as_char() == ':')
}

/// Whether a path has a further name in these tokens.
fn goes_on(after: &[TokenTree]) -> bool {
    begins_with_colons(after) && matches!(after.get(2), Some(TokenTree::Ident(_)))
}

/// Whether what follows these tokens is a further name of a path.
fn continues(before: &[TokenTree]) -> bool {
    matches!(before, [.., TokenTree::Ident(_), _, _]) && begins_with_colons(&before[before.len() - 2..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_literals_and_functions_are_found_among_tokens() {
        let tokens = r#"#[doc = "no"] pub fn run() { crate::a::b("x", b"y"); c(d) }"#.parse().unwrap();
        let found = pieces(tokens);
        assert!(found.contains(&Piece::Function("run".into())));
        assert!(found.contains(&Piece::Path(["crate", "a", "b"].map(str::to_owned).to_vec())));
        let literals: Vec<&Piece> = found.iter().filter(|piece| matches!(piece, Piece::Literal(_))).collect();
        assert_eq!(literals, [&Piece::Literal("x".into()), &Piece::Literal("y".into())]);
        assert_eq!(found.iter().filter(|piece| matches!(piece, Piece::Path(_))).count(), 1);
    }
}
