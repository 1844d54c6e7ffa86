//! Types, in the fewest words that tell them apart: `Result<Vec<u8>, &str>`, without the paths of names and without lifetimes.

use syn::{GenericArgument, PathArguments, ReturnType, Type, TypeParamBound};

/// What a function returns; empty for nothing.
pub fn returned(output: &ReturnType) -> String {
    match output {
        ReturnType::Default => String::new(),
        ReturnType::Type(_, of) => short(of),
    }
}

/// A type.
pub fn short(of: &Type) -> String {
    match of {
        Type::Path(of) => path(&of.path),
        Type::Reference(of) => format!("&{}", short(&of.elem)),
        Type::Group(of) => short(&of.elem),
        Type::Paren(of) => short(&of.elem),
        Type::Tuple(of) => format!("({})", of.elems.iter().map(short).collect::<Vec<_>>().join(", ")),
        Type::Slice(of) => format!("[{}]", short(&of.elem)),
        Type::Array(of) => format!("[{}; _]", short(&of.elem)),
        Type::ImplTrait(of) => bounds("impl", of.bounds.iter()),
        Type::TraitObject(of) => bounds("dyn", of.bounds.iter()),
        _ => "_".to_owned(),
    }
}

/// The last name of a path, with its arguments.
pub fn path(path: &syn::Path) -> String {
    let Some(last) = path.segments.last() else { return String::new() };
    let name = last.ident.to_string();
    match &last.arguments {
        PathArguments::AngleBracketed(arguments) => {
            let types: Vec<String> = arguments.args.iter().filter_map(argument).collect();
            if types.is_empty() {
                name
            } else {
                format!("{name}<{}>", types.join(", "))
            }
        }
        PathArguments::Parenthesized(_) | PathArguments::None => name,
    }
}

fn argument(argument: &GenericArgument) -> Option<String> {
    match argument {
        GenericArgument::Type(of) => Some(short(of)),
        GenericArgument::AssocType(of) => Some(format!("{} = {}", of.ident, short(&of.ty))),
        _ => None,
    }
}

fn bounds<'a>(word: &str, bounds: impl Iterator<Item = &'a TypeParamBound>) -> String {
    let names =
        bounds.filter_map(|bound| if let TypeParamBound::Trait(it) = bound { Some(path(&it.path)) } else { None });
    format!("{word} {}", names.collect::<Vec<_>>().join(" + "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_lifetimes_tell_nothing_apart() {
        let of = |text: &str| short(&syn::parse_str(text).unwrap());
        assert_eq!(of("std::result::Result<(), &'static str>"), "Result<(), &str>");
        assert_eq!(of("(MutexGuard<'a, Option<State>>, [u8; 4])"), "(MutexGuard<Option<State>>, [u8; _])");
        assert_eq!(
            of("impl Iterator<Item = Box<dyn Error + Send>> + 'a"),
            "impl Iterator<Item = Box<dyn Error + Send>>"
        );
        assert_eq!(returned(&syn::parse_str("-> Option<String>").unwrap()), "Option<String>");
    }
}
