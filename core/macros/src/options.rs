//! The options in `#[tool(…)]`, `#[resource(…)]` and `#[prompt(…)]`.

use quote::ToTokens as _;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, Ident, LitBool, LitStr, Meta, Result, Token, parenthesized};

/// What a method becomes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Resource,
    Prompt,
}

impl Kind {
    pub(crate) fn of(attribute: &Attribute) -> Option<Self> {
        let name = attribute.path().get_ident()?;
        match name.to_string().as_str() {
            "tool" => Some(Self::Tool),
            "resource" => Some(Self::Resource),
            "prompt" => Some(Self::Prompt),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
        }
    }

    fn known(self) -> &'static [&'static str] {
        match self {
            Self::Tool => &[
                "name",
                "title",
                "description",
                "read_only",
                "destructive",
                "idempotent",
                "open_world",
                "icons",
                "meta",
                "output_schema",
                "scopes",
                "tags",
                "run_once",
                "timeout",
                "blocking",
            ],
            Self::Resource => &[
                "name",
                "title",
                "description",
                "mime_type",
                "icons",
                "meta",
                "annotations",
                "cache",
                "scopes",
                "tags",
                "unchecked_variables",
                "list",
                "blocking",
            ],
            Self::Prompt => &[
                "name",
                "title",
                "description",
                "icons",
                "meta",
                "scopes",
                "tags",
                "blocking",
            ],
        }
    }
}

/// The options of a method.
#[derive(Default)]
pub(crate) struct Options {
    /// The URI of a resource, or the template of several.
    pub(crate) uri: Option<LitStr>,
    pub(crate) name: Option<Expr>,
    pub(crate) description: Option<Expr>,
    pub(crate) icons: Vec<Expr>,
    /// The method that lists resources of a template.
    pub(crate) list: Option<Ident>,
    /// Options with a value that a definition has under the same name, such as `title`, in the order of the source.
    pub(crate) values: Vec<(Ident, Expr)>,
    /// Options with several values that a definition has under the same name, such as `tags`.
    pub(crate) lists: Vec<(Ident, Vec<Expr>)>,
    /// Switches, such as `read_only`, in the order of the source.
    pub(crate) switches: Vec<(Ident, bool)>,
    pub(crate) is_blocking: bool,
}

impl Options {
    /// Reads an attribute.
    pub(crate) fn read(kind: Kind, attribute: &Attribute) -> Result<Self> {
        let mut options = Self::default();
        match &attribute.meta {
            Meta::Path(_) => {}
            Meta::List(list) => {
                let read = |input: ParseStream<'_>| options.read_list(kind, input);
                list.parse_args_with(read)?;
            }
            Meta::NameValue(_) => {
                let name = kind.name();
                return Err(Error::new_spanned(
                    attribute,
                    format!("write `#[{name}(…)]`"),
                ));
            }
        }
        if kind == Kind::Resource && options.uri.is_none() {
            return Err(Error::new_spanned(
                attribute,
                "a resource needs a URI or a URI template: `#[resource(\"note://{id}\")]`",
            ));
        }
        options.check_hints()?;
        Ok(options)
    }

    fn read_list(&mut self, kind: Kind, input: ParseStream<'_>) -> Result<()> {
        if input.peek(LitStr) {
            let text: LitStr = input.parse()?;
            if kind != Kind::Resource {
                let name = kind.name();
                return Err(Error::new_spanned(
                    text,
                    format!("name the option: `#[{name}(description = \"…\")]`"),
                ));
            }
            self.uri = Some(text);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let mut seen: Vec<Ident> = Vec::new();
        for option in Punctuated::<OptionOfAttribute, Token![,]>::parse_terminated(input)? {
            let name = option.name.clone();
            if seen.contains(&name) {
                return Err(Error::new_spanned(&name, format!("`{name}` is set twice")));
            }
            if !kind.known().iter().any(|known| name == known) {
                return Err(unknown(kind, &name));
            }
            self.set(option)?;
            seen.push(name);
        }
        Ok(())
    }

    fn set(&mut self, option: OptionOfAttribute) -> Result<()> {
        let OptionOfAttribute { name, value } = option;
        match name.to_string().as_str() {
            "name" => self.name = Some(value.expression(&name)?),
            "description" => self.description = Some(value.expression(&name)?),
            "title" | "mime_type" | "timeout" | "meta" | "output_schema" | "annotations"
            | "cache" => {
                let value = value.expression(&name)?;
                self.values.push((name, value));
            }
            "scopes" | "tags" | "unchecked_variables" => {
                let values = value.list(&name)?;
                self.lists.push((name, values));
            }
            "icons" => self.icons = value.list(&name)?,
            "list" => self.list = Some(value.method(&name)?),
            "blocking" => self.is_blocking = value.switch(&name)?,
            _ => {
                let is_on = value.switch(&name)?;
                self.switches.push((name, is_on));
            }
        }
        Ok(())
    }

    /// Refuses hints that contradict each other: a tool that changes nothing destroys nothing.
    fn check_hints(&self) -> Result<()> {
        let is_read_only = self
            .switches
            .iter()
            .any(|(name, is_on)| name == "read_only" && *is_on);
        let destructive = self
            .switches
            .iter()
            .find(|(name, is_on)| name == "destructive" && *is_on);
        match destructive {
            Some((name, _)) if is_read_only => Err(Error::new_spanned(
                name,
                "a tool that is `read_only` is not `destructive`",
            )),
            _ => Ok(()),
        }
    }
}

fn unknown(kind: Kind, name: &Ident) -> Error {
    let known: Vec<_> = kind
        .known()
        .iter()
        .map(|known| format!("`{known}`"))
        .collect();
    let (kind, known) = (kind.name(), known.join(", "));
    Error::new_spanned(
        name,
        format!("`{name}` is not an option of `#[{kind}]`; known are {known}"),
    )
}

/// One option: `read_only`, `name = "…"`, `scopes("…", "…")`.
struct OptionOfAttribute {
    name: Ident,
    value: OptionValue,
}

enum OptionValue {
    None,
    Expression(Box<Expr>),
    List(Vec<Expr>),
}

impl Parse for OptionOfAttribute {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.parse()?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            OptionValue::Expression(Box::new(input.parse()?))
        } else if input.peek(syn::token::Paren) {
            let list;
            parenthesized!(list in input);
            let list = Punctuated::<Expr, Token![,]>::parse_terminated(&list)?;
            OptionValue::List(list.into_iter().collect())
        } else {
            OptionValue::None
        };
        Ok(Self { name, value })
    }
}

impl OptionValue {
    fn expression(self, name: &Ident) -> Result<Expr> {
        match self {
            Self::Expression(value) => Ok(*value),
            _ => Err(Error::new_spanned(
                name,
                format!("`{name}` needs a value: `{name} = \"…\"`"),
            )),
        }
    }

    /// Reads the name of a method.
    fn method(self, name: &Ident) -> Result<Ident> {
        let method = match &self {
            Self::Expression(value) => syn::parse2(value.to_token_stream()).ok(),
            _ => None,
        };
        method.ok_or_else(|| {
            Error::new_spanned(
                name,
                format!("`{name}` needs the name of a method of this block: `{name} = …`"),
            )
        })
    }

    fn list(self, name: &Ident) -> Result<Vec<Expr>> {
        match self {
            Self::List(values) => Ok(values),
            _ => Err(Error::new_spanned(
                name,
                format!("`{name}` needs a list: `{name}(\"…\", \"…\")`"),
            )),
        }
    }

    fn switch(self, name: &Ident) -> Result<bool> {
        let refused = || {
            Error::new_spanned(
                name,
                format!("write `{name}`, `{name} = true` or `{name} = false`"),
            )
        };
        match self {
            Self::None => Ok(true),
            Self::Expression(value) => {
                let value: LitBool = syn::parse2(value.to_token_stream()).map_err(|_| refused())?;
                Ok(value.value)
            }
            Self::List(_) => Err(refused()),
        }
    }
}
