//! What the sources of the format declare, from their syntax trees.

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::Item;

/// The modules of constants in a source file: their names, and the names and values of their constants.
pub fn modules(source: &str) -> Vec<(String, Vec<(String, String)>)> {
    let inline = items(source).into_iter().filter_map(|item| match item {
        // `pub mod name;` has its constants elsewhere.
        Item::Mod(module) => Some((module.ident.to_string(), module.content?.1)),
        _ => None,
    });
    let modules = inline.map(|(name, items)| (name, items.into_iter().filter_map(constant).collect::<Vec<_>>()));
    modules.filter(|(_, constants)| !constants.is_empty()).collect()
}

/// The names of the records that a source file declares with `record!`.
pub fn records_declared(source: &str) -> Vec<String> {
    let records = items(source).into_iter().filter_map(|item| match item {
        Item::Macro(call) if call.mac.path.is_ident("record") => Some(call.mac.tokens),
        _ => None,
    });
    records.map(|tokens| struct_name(tokens).unwrap()).collect()
}

fn items(source: &str) -> Vec<Item> {
    syn::parse_file(source).unwrap().items
}

/// The name of a constant, and its value as the source has it.
fn constant(item: Item) -> Option<(String, String)> {
    match item {
        Item::Const(constant) => Some((constant.ident.to_string(), constant.expr.span().source_text().unwrap())),
        _ => None,
    }
}

fn struct_name(tokens: TokenStream) -> Option<String> {
    let mut tokens = tokens.into_iter();
    tokens.find(|token| matches!(token, TokenTree::Ident(word) if word == "struct"))?;
    tokens.next().map(|name| name.to_string())
}
