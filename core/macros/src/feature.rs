//! A method that becomes a tool, a resource or a prompt.

use syn::{Attribute, Error, Expr, ExprLit, ImplItemFn, Lit, Meta, Result};

use crate::options::{Kind, Options};
use crate::parameters::Parameters;

/// A method with its attribute.
pub(crate) struct Feature {
    pub(crate) kind: Kind,
    pub(crate) options: Options,
    pub(crate) parameters: Parameters,
    /// The documentation of the method.
    pub(crate) documentation: Option<String>,
}

impl Feature {
    /// Reads a method, and removes the attribute; `None` if it has none.
    pub(crate) fn take(method: &mut ImplItemFn) -> Result<Option<Self>> {
        let mut kinds = Vec::new();
        method.attrs.retain(|attribute| match Kind::of(attribute) {
            Some(kind) => {
                kinds.push((kind, attribute.clone()));
                false
            }
            None => true,
        });
        let (kind, attribute) = match kinds.as_slice() {
            [] => return Ok(None),
            [one] => one.clone(),
            [_, (_, second), ..] => {
                return Err(Error::new_spanned(
                    second,
                    "a method is one of `#[tool]`, `#[resource]` and `#[prompt]`",
                ));
            }
        };
        if let Some(parameter) = method.sig.generics.params.first() {
            return Err(Error::new_spanned(
                parameter,
                "a method with type parameters or lifetimes can't be called by a client",
            ));
        }
        let options = Options::read(kind, &attribute)?;
        if let (true, Some(keyword)) = (options.is_blocking, &method.sig.asyncness) {
            return Err(Error::new_spanned(
                keyword,
                "a `blocking` method is not `async`: it runs on a thread of its own",
            ));
        }
        let parameters = Parameters::take(&mut method.sig)?;
        Ok(Some(Self {
            kind,
            options,
            parameters,
            documentation: documentation(&method.attrs),
        }))
    }
}

/// Returns the text of documentation comments.
pub(crate) fn documentation(attributes: &[Attribute]) -> Option<String> {
    let lines = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        });
    let lines: Vec<String> = lines
        .flat_map(|text| {
            text.split('\n')
                .map(|line| line.trim().to_owned())
                .collect::<Vec<_>>()
        })
        .collect();
    let text = lines.join("\n");
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
