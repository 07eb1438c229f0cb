//! `#[derive(Members)]`: implements reading of a struct from a JSON object, based on its serde attributes for writing.
//!
//! It generates a call of `mcpline_protocol::members!`, whose documentation explains why serde's own derive is not
//! used. It supports the serde attributes that the protocol's structs have: `rename_all = "camelCase"`, `rename`,
//! `flatten` and `skip_serializing_if`; `serialize_with` is ignored, and any other is an error. A field is required
//! unless it is an `Option` or may be skipped. A flattened field receives all members that the struct does not name;
//! without one they are ignored.
//!
//! Its own attributes:
//!
//! | On | Attribute | Meaning |
//! | --- | --- | --- |
//! | the struct | `#[members(start = EXPRESSION)]` | the value that members are read into, if it is not the default |
//! | a field | `#[members(optional)]`, `#[members(required)]` | other than the rule above says |
//! | a field | `#[members(read = FUNCTION)]` | what reads it, instead of `mcpline_protocol::members::read` |
//! | a flattened field | `#[members(within(a, b))]` | the fields of its own that are read, named as the struct's are |

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{
    Data, DeriveInput, Error, Expr, Field, Fields, Ident, LitStr, Path, Result, Token, Type,
};
use syn::{parenthesized, parse_macro_input};

/// Implements `Deserialize`. See the [crate](self).
#[proc_macro_derive(Members, attributes(members, serde))]
pub fn members(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// The attributes of serde that a field may have.
const KNOWN_SERDE_ATTRIBUTES: &str =
    "known are `rename`, `flatten`, `skip_serializing_if` and `serialize_with`";

/// The options that the attributes of a field set.
#[derive(Default)]
struct FieldOptions {
    rename: Option<LitStr>,
    is_flattened: bool,
    may_be_skipped: bool,
    is_required: Option<bool>,
    read: Option<Path>,
    flattened_fields: Vec<Ident>,
}

fn expand(input: &DeriveInput) -> Result<Tokens> {
    let name = &input.ident;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(name, "only a struct has members"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(name, "the fields need names"));
    };
    let (start, is_camel_case) = struct_options(input)?;
    let start = start.map_or_else(
        || quote!(<#name as ::core::default::Default>::default()),
        |start| quote!(#start),
    );

    let mut members = Vec::new();
    let mut required = Vec::new();
    let mut rest = None;
    for field in &fields.named {
        let Some(ident) = &field.ident else { continue };
        let options = field_options(field)?;
        if options.is_flattened && options.flattened_fields.is_empty() {
            rest = Some(ident.clone());
            continue;
        }
        if options.is_flattened {
            for inner in &options.flattened_fields {
                let member_name = member_name(inner, is_camel_case);
                members.push(quote!(#inner in #ident = #member_name));
            }
            continue;
        }
        let member_name = options
            .rename
            .unwrap_or_else(|| member_name(ident, is_camel_case));
        let read = options.read.map(|read| quote!(=> #read));
        members.push(quote!(#ident = #member_name #read));
        let is_usually_required = !is_option(&field.ty) && !options.may_be_skipped;
        if options.is_required.unwrap_or(is_usually_required) {
            required.push(ident);
        }
    }
    let rest = rest.unwrap_or_else(|| Ident::new("ignored", name.span()));
    Ok(quote! {
        ::mcpline_protocol::members! {
            #name from #start; others #rest; needs #(#required),*;
            #(#members),*
        }
    })
}

/// The initial value, and whether members are named in camel case.
fn struct_options(input: &DeriveInput) -> Result<(Option<Expr>, bool)> {
    let mut start = None;
    let mut is_camel_case = false;
    for attribute in &input.attrs {
        if attribute.path().is_ident("members") {
            attribute.parse_nested_meta(|meta| {
                if !meta.path.is_ident("start") {
                    return Err(meta.error("only `start` is known here"));
                }
                start = Some(meta.value()?.parse()?);
                Ok(())
            })?;
        } else if attribute.path().is_ident("serde") {
            attribute.parse_nested_meta(|meta| {
                let rule: LitStr = match meta.path.is_ident("rename_all") {
                    true => meta.value()?.parse()?,
                    false => return Err(meta.error("only `rename_all` is known here")),
                };
                if rule.value() != "camelCase" {
                    return Err(meta.error("only `camelCase` is known"));
                }
                is_camel_case = true;
                Ok(())
            })?;
        }
    }
    Ok((start, is_camel_case))
}

fn field_options(field: &Field) -> Result<FieldOptions> {
    let mut options = FieldOptions::default();
    for attribute in &field.attrs {
        if attribute.path().is_ident("members") {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("optional") {
                    options.is_required = Some(false);
                } else if meta.path.is_ident("required") {
                    options.is_required = Some(true);
                } else if meta.path.is_ident("read") {
                    options.read = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("within") {
                    options.flattened_fields = parse_names(meta.input)?;
                } else {
                    return Err(meta.error("known are `optional`, `required`, `read` and `within`"));
                }
                Ok(())
            })?;
        } else if attribute.path().is_ident("serde") {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("rename") {
                    options.rename = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("flatten") {
                    options.is_flattened = true;
                } else if meta.path.is_ident("skip_serializing_if") {
                    meta.value()?.parse::<LitStr>()?;
                    options.may_be_skipped = true;
                } else if meta.path.is_ident("serialize_with") {
                    meta.value()?.parse::<LitStr>()?;
                } else {
                    return Err(meta.error(KNOWN_SERDE_ATTRIBUTES));
                }
                Ok(())
            })?;
        }
    }
    Ok(options)
}

fn parse_names(input: ParseStream<'_>) -> Result<Vec<Ident>> {
    let content;
    parenthesized!(content in input);
    let names = Punctuated::<Ident, Token![,]>::parse_terminated(&content)?;
    Ok(names.into_iter().collect())
}

/// The JSON name of a field.
fn member_name(field: &Ident, is_camel_case: bool) -> LitStr {
    let name = field.to_string();
    let mut member_name = String::new();
    let mut is_start = false;
    for character in name.trim_start_matches("r#").chars() {
        match character {
            '_' if is_camel_case => is_start = true,
            _ if is_start => {
                member_name.push(character.to_ascii_uppercase());
                is_start = false;
            }
            _ => member_name.push(character),
        }
    }
    LitStr::new(&member_name, field.span())
}

fn is_option(kind: &Type) -> bool {
    let Type::Path(path) = kind else { return false };
    path.path
        .segments
        .last()
        .is_some_and(|segment| segment.ident == "Option")
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn generated(input: &DeriveInput) -> String {
        match expand(input) {
            Ok(tokens) => tokens.to_string().replace(' ', ""),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn members_are_named_and_required_as_serde_writes_them() {
        let generated = generated(&parse_quote! {
            #[serde(rename_all = "camelCase")]
            struct Tool {
                name: String,
                input_schema: Value,
                title: Option<String>,
                #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
                meta: Option<Extra>,
                #[serde(skip_serializing_if = "Vec::is_empty")]
                icons: Vec<Icon>,
                #[serde(flatten)]
                extra: Extra,
            }
        });
        assert!(
            generated.contains("othersextra;needsname,input_schema;"),
            "{generated}"
        );
        assert!(
            generated.contains(
                r#"name="name",input_schema="inputSchema",title="title",meta="_meta",icons="icons""#
            ),
            "{generated}"
        );
    }

    #[test]
    fn own_attributes_are_applied() {
        let generated = generated(&parse_quote! {
            #[members(start = Kept::new("x"))]
            struct Kept {
                #[members(optional)]
                is_dynamic: bool,
                #[members(required, read = present)]
                value: Option<Value>,
                #[members(within(ttl_ms))]
                #[serde(flatten)]
                cache: CacheHints,
            }
        });
        assert!(
            generated.contains(r#"KeptfromKept::new("x");othersignored;needsvalue;"#),
            "{generated}"
        );
        assert!(
            generated.contains(
                r#"is_dynamic="is_dynamic",value="value"=>present,ttl_msincache="ttl_ms""#
            ),
            "{generated}"
        );
    }

    #[test]
    fn rejects_unsupported_input() {
        for (input, expected) in [
            (
                parse_quote!(
                    struct A {
                        #[serde(alias = "b")]
                        a: u8,
                    }
                ),
                KNOWN_SERDE_ATTRIBUTES,
            ),
            (
                parse_quote!(
                    #[serde(rename_all = "kebab-case")]
                    struct A {
                        a: u8,
                    }
                ),
                "only `camelCase` is known",
            ),
            (
                parse_quote!(
                    struct A(u8);
                ),
                "the fields need names",
            ),
            (
                parse_quote!(
                    enum A {
                        B,
                    }
                ),
                "only a struct has members",
            ),
        ] {
            assert_eq!(generated(&input), format!("error: {expected}"));
        }
    }
}
