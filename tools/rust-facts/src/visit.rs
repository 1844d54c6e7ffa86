//! The walk through the syntax tree of a file.

use std::collections::BTreeSet;

use proc_macro2::{Span, TokenStream};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, ImplItem, Item, Lit, Member, Meta, TraitItem, UseTree};

use crate::tokens::{pieces, text_of, Piece};
use crate::types;
use crate::{Facts, Literal, Struct};

/// The facts about a file with the root of this module.
pub fn facts(file: &syn::File, module: Vec<String>) -> Facts {
    let mut walk = Walk { module, ..Walk::default() };
    let lines = file.attrs.iter().filter_map(doc_line).map(|line| line.trim().to_owned());
    walk.facts.head = lines.collect::<Vec<_>>().join("\n");
    walk.visit_file(file);
    walk.facts
}

#[derive(Default)]
struct Walk {
    facts: Facts,
    /// The module that is being walked.
    module: Vec<String>,
    /// The functions, constants and variables around it.
    items: Vec<String>,
    /// Whether it is for unit tests only.
    in_tests: bool,
}

impl Walk {
    /// Walks an item, whose attributes may say that it is for unit tests.
    fn walk_item(&mut self, attributes: &[Attribute], span: Span, walk: impl FnOnce(&mut Walk)) {
        let before = self.in_tests;
        if !before && attributes.iter().any(is_for_tests) {
            let first = attributes.iter().map(|attribute| attribute.span().start().line).min();
            self.facts.tests.push((first.unwrap_or(span.start().line), span.end().line));
            self.in_tests = true;
        }
        walk(self);
        self.in_tests = before;
    }

    fn walk_function(&mut self, signature: &syn::Signature, walk: impl FnOnce(&mut Walk)) {
        self.facts.functions.push(signature.ident.to_string());
        if !self.in_tests {
            self.facts.returns.push((signature.ident.to_string(), types::returned(&signature.output)));
        }
        self.walk_named(&signature.ident, walk);
    }

    fn walk_named(&mut self, name: &syn::Ident, walk: impl FnOnce(&mut Walk)) {
        self.items.push(name.to_string());
        walk(self);
        self.items.pop();
    }

    fn add_path(&mut self, names: &[String]) {
        if self.in_tests || names.len() < 2 {
            return;
        }
        let ups = names.iter().take_while(|name| *name == "super").count();
        let skipped = ups + usize::from(names[0] == "self");
        let path: Vec<&str> = match names[0].as_str() {
            "self" | "super" => {
                let above = &self.module[..self.module.len().saturating_sub(ups)];
                ["crate"]
                    .into_iter()
                    .chain(above.iter().map(String::as_str))
                    .chain(names[skipped..].iter().map(String::as_str))
                    .collect()
            }
            _ => names.iter().map(String::as_str).collect(),
        };
        self.facts.paths.insert(path.join("::"));
    }

    fn add_literal(&mut self, text: String, receiver: &str) {
        if !self.in_tests {
            let item = self.items.last().cloned().unwrap_or_default();
            self.facts.literals.push(Literal { text, item, receiver: receiver.to_owned() });
        }
    }

    fn add_tokens(&mut self, tokens: &TokenStream) {
        for piece in pieces(tokens.clone()) {
            match piece {
                Piece::Function(name) => self.facts.functions.push(name),
                Piece::Path(names) => self.add_path(&names),
                Piece::Literal(text) => self.add_literal(text, ""),
                Piece::Identifier(name) => {
                    if !self.in_tests {
                        self.facts.identifiers.insert(name);
                    }
                }
            }
        }
    }

    fn add_use(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: String| [before, &[name]].concat();
        match tree {
            UseTree::Path(path) => self.add_use(&path.tree, &with(path.ident.to_string())),
            UseTree::Name(name) => self.add_path(&with(name.ident.to_string())),
            UseTree::Rename(rename) => self.add_path(&with(rename.ident.to_string())),
            UseTree::Glob(_) => self.add_path(&with("*".to_owned())),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.add_use(item, before)),
        }
    }
}

impl<'ast> Visit<'ast> for Walk {
    fn visit_item(&mut self, item: &'ast Item) {
        self.walk_item(attributes(item), item.span(), |walk| visit::visit_item(walk, item));
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes = if let ImplItem::Fn(function) = item { &function.attrs[..] } else { &[] };
        self.walk_item(attributes, item.span(), |walk| visit::visit_impl_item(walk, item));
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        if item.content.is_none() {
            self.facts.modules.push((self.module.join("::"), item.attrs.iter().find_map(path_of)));
        }
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.walk_function(&item.sig, |walk| visit::visit_item_fn(walk, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.walk_function(&item.sig, |walk| visit::visit_impl_item_fn(walk, item));
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if let TraitItem::Fn(function) = item {
            self.walk_function(&function.sig, |walk| visit::visit_trait_item(walk, item));
        } else {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        if !self.in_tests {
            let named =
                item.fields.iter().filter_map(|field| Some((field.ident.as_ref()?.to_string(), names(&field.attrs))));
            let found = Struct { attributes: names(&item.attrs), fields: named.collect() };
            self.facts.structs.insert(item.ident.to_string(), found);
        }
        visit::visit_item_struct(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_use(&item.tree, &[]);
        visit::visit_item_use(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add_path(&names);
        visit::visit_path(self, path);
    }

    fn visit_type_path(&mut self, of: &'ast syn::TypePath) {
        let text = types::path(&of.path);
        if !self.in_tests && text.contains('<') {
            self.facts.types.insert(text);
        }
        visit::visit_type_path(self, of);
    }

    fn visit_ident(&mut self, ident: &'ast syn::Ident) {
        if !self.in_tests {
            self.facts.identifiers.insert(ident.to_string());
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let Expr::Path(function) = &*call.func else { return visit::visit_expr_call(self, call) };
        let names: Vec<String> = function.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.visit_expr(&call.func);
        for argument in &call.args {
            match argument {
                Expr::Lit(literal) => {
                    text_of(&literal.lit).into_iter().for_each(|text| self.add_literal(text, &names.join("::")))
                }
                other => self.visit_expr(other),
            }
        }
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.walk_named(&item.ident, |walk| visit::visit_item_const(walk, item));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.walk_named(&item.ident, |walk| visit::visit_item_static(walk, item));
    }

    fn visit_field_value(&mut self, value: &'ast syn::FieldValue) {
        match (&value.member, &value.expr) {
            (Member::Named(field), Expr::Lit(ExprLit { lit: Lit::Int(number), .. })) => {
                self.add_literal(number.to_string(), &field.to_string());
            }
            _ => visit::visit_field_value(self, value),
        }
    }

    fn visit_lit(&mut self, literal: &'ast Lit) {
        text_of(literal).into_iter().for_each(|text| self.add_literal(text, ""));
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        self.add_tokens(&called.tokens);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            // Comments are no literals of the program.
            Meta::NameValue(value) if value.path.is_ident("doc") => {}
            Meta::List(list) => {
                self.visit_path(&list.path);
                self.add_tokens(&list.tokens);
            }
            _ => visit::visit_attribute(self, attribute),
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `cfg(test)`, or `cfg(all(...))` with `test` in it.
fn is_for_tests(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    let names = identifiers(list.tokens.clone());
    list.path.is_ident("cfg") && names.contains("test") && !names.contains("not") && !names.contains("any")
}

/// The file that a module names.
fn path_of(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(syn::MetaNameValue { path, value: Expr::Lit(file), .. }) if path.is_ident("path") => {
            text_of(&file.lit)
        }
        _ => None,
    }
}

/// The line of a comment that documents what it stands in.
fn doc_line(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(syn::MetaNameValue { path, value: Expr::Lit(line), .. }) if path.is_ident("doc") => {
            text_of(&line.lit)
        }
        _ => None,
    }
}

fn identifiers(tokens: TokenStream) -> BTreeSet<String> {
    pieces(tokens)
        .into_iter()
        .filter_map(|piece| if let Piece::Identifier(name) = piece { Some(name) } else { None })
        .collect()
}

/// The names in lists of attributes, such as `derive(Debug)`.
fn names(attributes: &[Attribute]) -> BTreeSet<String> {
    let lists = attributes.iter().filter_map(|attribute| attribute.meta.require_list().ok());
    lists.flat_map(|list| identifiers(list.tokens.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts_about(text: &str, module: &[&str]) -> Facts {
        facts(&syn::parse_file(text).unwrap(), module.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn paths_are_resolved_from_their_module() {
        let text = "use crate::{b::Thing, c};\nuse super::other; // crate::comment::Thing\nfn f() { self::g(); super::super::b::h() }
            mod inner { pub(in super::super) fn i() { vec![super::j::<u8>()] } }";
        let found = facts_about(text, &["a", "this"]);
        let expected = ["a", "a::other", "a::this::g", "a::this::j", "b::Thing", "b::h", "c"];
        assert!(found.paths.iter().map(|path| path.trim_start_matches("crate::")).eq(expected), "{:?}", found.paths);
    }

    #[test]
    fn literals_know_where_they_stand_and_what_gets_them() {
        let text = "/// No \"literal\".\nconst A: &str = \"a\"; static B: C = C { d: 8 };
            fn f() { g::h(b\"b\", 1, c(\"c\")); format!(\"d\") }";
        let found: Vec<_> =
            facts_about(text, &[]).literals.into_iter().map(|it| [it.text, it.item, it.receiver]).collect();
        let expected = [["a", "A", ""], ["8", "B", "d"], ["b", "f", "g::h"], ["c", "f", "c"], ["d", "f", ""]];
        assert_eq!(found, expected);
    }

    #[test]
    fn unit_tests_are_set_apart() {
        let text =
            "//! Head.\nfn a() {}\n#[cfg(test)]\n/// B.\nmod tests {\n    use crate::x;\n    fn b() { \"b\" }\n}\n
            impl C { #[cfg(all(test, unix))]\n fn d() {} }\n#[cfg(not(test))]\nfn e() {}";
        let found = facts_about(text, &[]);
        assert_eq!(found.tests, [(3, 8), (10, 11)]);
        assert_eq!(found.functions, ["a", "b", "d", "e"]);
        assert_eq!(found.head, "Head.");
        assert!(found.paths.is_empty() && found.literals.is_empty());
    }

    #[test]
    fn macros_are_read_by_their_tokens() {
        let found = facts_about("macro_rules! m { () => { fn of() { $crate::x::y(\"z\") } } }", &[]);
        assert_eq!((&found.functions[..], &found.literals[0].text[..]), (&["of".to_owned()][..], "z"));
        assert!(found.paths.contains("crate::x::y"));
    }

    #[test]
    fn functions_have_their_results_and_modules_their_files() {
        let text = "fn a() -> Option<String> {} impl B { fn c(&self) { let d: Vec<io::Result<u8>> = e(); } }
            mod f; mod g { mod h; } #[cfg(test)] #[path = \"j.rs\"] mod i; #[cfg(test)] fn k() -> Result<(), String> {}";
        let found = facts_about(text, &["x"]);
        let returns: Vec<_> = found.returns.iter().map(|(name, of)| (name.as_str(), of.as_str())).collect();
        assert_eq!(returns, [("a", "Option<String>"), ("c", "")]);
        assert_eq!(found.types.iter().collect::<Vec<_>>(), ["Option<String>", "Result<u8>", "Vec<Result<u8>>"]);
        let modules: Vec<_> = found.modules.iter().map(|(name, path)| (name.as_str(), path.as_deref())).collect();
        assert_eq!(modules, [("x::f", None), ("x::g::h", None), ("x::i", Some("j.rs"))]);
    }

    #[test]
    fn structs_have_their_fields_and_attributes() {
        let found =
            facts_about("#[serde(deny)]\nstruct A { /// B.\n b: u8, #[serde(skip)] c: u8 }\nstruct D(u8);", &[]);
        assert!(found.structs["A"].attributes.contains("deny"));
        assert_eq!(found.structs["A"].fields.keys().collect::<Vec<_>>(), ["b", "c"]);
        assert!(found.structs["A"].fields["c"].contains("skip") && found.structs["D"].fields.is_empty());
    }
}
