//! The generated code: an implementation of `mcpline::server::Features`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Error, FnArg, Ident, ImplItem, ImplItemFn, ItemImpl, LitStr, Result, ReturnType,
};

use crate::feature::{Feature, documentation};
use crate::options::Kind;
use crate::parameters::{Parameter, PlainParameter};
use crate::uri_variables::uri_variables;

/// Implements `Features` for the type of an `impl` block, and removes the attributes from it.
pub(crate) fn features(block: &mut ItemImpl) -> Result<TokenStream> {
    let mut added = Vec::new();
    let mut errors: Option<Error> = None;
    let mut note = |error: Error| match &mut errors {
        Some(errors) => errors.combine(error),
        None => errors = Some(error),
    };
    if let Some((path, _)) = &block.trait_ {
        note(Error::new_spanned(
            path,
            "`#[tools]` is for an `impl` block of a type, not of a trait",
        ));
    }
    let mut is_empty = true;
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else {
            continue;
        };
        match Feature::take(method).and_then(|feature| {
            feature
                .map(|feature| addition(method, &feature))
                .transpose()
        }) {
            Ok(None) => {}
            Ok(Some(addition)) => {
                is_empty = false;
                added.push(addition);
            }
            Err(error) => {
                is_empty = false;
                strip_parameters(method);
                note(error);
            }
        }
    }
    if is_empty {
        note(Error::new_spanned(
            &block.self_ty,
            "no method of this block has `#[tool]`, `#[resource(…)]` or `#[prompt]`",
        ));
    }
    if let Some(errors) = errors {
        return Err(errors);
    }
    let (generics, _, conditions) = block.generics.split_for_impl();
    let kind = &block.self_ty;
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::mcpline::server::Features for #kind #conditions {
            fn add_features(
                self: &::std::sync::Arc<Self>,
                server: &::mcpline::Server,
            ) -> ::std::result::Result<(), ::mcpline::Error> {
                #(#added)*
                ::std::result::Result::Ok(())
            }
        }
    })
}

/// Removes attributes of parameters that Rust would refuse, after an error.
fn strip_parameters(method: &mut ImplItemFn) {
    for input in &mut method.sig.inputs {
        if let FnArg::Typed(typed) = input {
            typed.attrs.clear();
        }
    }
}

/// Returns the statement that adds a feature to a server.
fn addition(method: &ImplItemFn, feature: &Feature) -> Result<TokenStream> {
    let conditions = method
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"));
    let arguments = arguments(feature)?;
    let handler = handler(method, feature, &arguments.kind);
    let name = LitStr::new(
        &method.sig.ident.unraw().to_string(),
        method.sig.ident.span(),
    );
    let options = &feature.options;
    let name = match &options.name {
        Some(name) => quote!(#name),
        None => quote!(#name),
    };
    // Errors about what a method returns are shown at its type.
    let span = match &method.sig.output {
        ReturnType::Type(_, kind) => kind.span(),
        ReturnType::Default => method.sig.ident.span(),
    };
    // The method may come from a macro, whose names are apart from those here.
    let span = span.resolved_at(Span::call_site());
    let created = match (feature.kind, &options.uri, &arguments.of_prompt) {
        (Kind::Tool, ..) => {
            quote_spanned!(span=> ::mcpline::server::ToolDefinition::new(#name, handler))
        }
        (Kind::Prompt, _, Some(of_prompt)) => quote_spanned! {span=>
            ::mcpline::server::PromptDefinition::with_arguments(#name, ::std::vec![#(#of_prompt),*], handler)
        },
        (Kind::Prompt, _, None) => {
            quote_spanned!(span=> ::mcpline::server::PromptDefinition::new(#name, handler))
        }
        (Kind::Resource, Some(uri), _) if is_template(uri) => {
            quote_spanned!(span=> ::mcpline::server::ResourceDefinition::template(#uri, #name, handler))
        }
        (Kind::Resource, uri, _) => {
            quote_spanned!(span=> ::mcpline::server::ResourceDefinition::new(#uri, #name, handler))
        }
    };
    let description = match (&options.description, &feature.documentation) {
        (Some(description), _) => Some(quote!(.description(#description))),
        (None, Some(text)) => Some(quote!(.description(#text))),
        (None, None) => None,
    };
    let title = options.title.as_ref().map(|title| quote!(.title(#title)));
    let mime_type = options.mime_type.as_ref();
    let mime_type = mime_type.map(|mime_type| quote!(.mime_type(#mime_type)));
    let scopes = &options.scopes;
    let scopes = (!scopes.is_empty()).then(|| quote!(.scopes([#(#scopes),*])));
    let tags = &options.tags;
    let tags = (!tags.is_empty()).then(|| quote!(.tags([#(#tags),*])));
    let timeout = options.timeout.as_ref();
    let timeout = timeout.map(|timeout| quote!(.timeout(#timeout)));
    let switches = options.switches.iter();
    let switches = switches.map(|(name, is_on)| quote!(.#name(#is_on)));
    let this = feature
        .parameters
        .has_receiver
        .then(|| quote!(let this = ::std::sync::Arc::clone(self);));
    let declared = &arguments.declared;
    Ok(quote! {
        #(#conditions)*
        {
            #declared
            #this
            let handler = #handler;
            let definition = #created;
            server.add(definition #title #description #mime_type #scopes #tags #timeout #(#switches)*)?;
        }
    })
}

fn is_template(uri: &LitStr) -> bool {
    uri.value().contains('{')
}

/// The type of a handler's arguments.
struct Arguments {
    /// The declaration of the type, if it is generated.
    declared: Option<TokenStream>,
    kind: TokenStream,
    /// The arguments of a prompt, unless they are derived from a type.
    of_prompt: Option<Vec<TokenStream>>,
}

fn arguments(feature: &Feature) -> Result<Arguments> {
    let parameters = &feature.parameters;
    if let (Kind::Resource, Some(uri)) = (feature.kind, &feature.options.uri) {
        check_variables(feature, uri)?;
    }
    if let Some(kind) = parameters.args() {
        return Ok(Arguments {
            declared: None,
            kind: quote!(#kind),
            of_prompt: None,
        });
    }
    let plain: Vec<_> = parameters.plain().collect();
    if plain.is_empty() {
        return Ok(Arguments {
            declared: None,
            kind: quote!(::mcpline::server::NoArguments),
            of_prompt: None,
        });
    }
    let is_text = feature.kind != Kind::Tool;
    let mut fields = Vec::new();
    for parameter in &plain {
        fields.push(match is_text {
            true => text_field(parameter)?,
            false => field(parameter),
        });
    }
    let schema = (!is_text).then(|| {
        quote! {
            #[derive(::mcpline::__private::schemars::JsonSchema)]
            #[schemars(crate = "::mcpline::__private::schemars")]
        }
    });
    let declared = quote! {
        #[derive(::mcpline::__private::serde::Deserialize)]
        #[serde(crate = "::mcpline::__private::serde", rename = "arguments")]
        #schema
        struct __Arguments {
            #(#fields),*
        }
    };
    let of_prompt = (feature.kind == Kind::Prompt)
        .then(|| plain.iter().map(|plain| prompt_argument(plain)).collect());
    Ok(Arguments {
        declared: Some(declared),
        kind: quote!(__Arguments),
        of_prompt,
    })
}

/// Checks that a resource without variables takes no arguments, and that each argument of a template is a variable.
fn check_variables(feature: &Feature, uri: &LitStr) -> Result<()> {
    let parameters = &feature.parameters;
    let variables = uri_variables(&uri.value());
    if variables.is_empty()
        && let Some(kind) = parameters.args()
    {
        return Err(Error::new_spanned(
            kind,
            "the URI of this resource has no variables, so its method takes no arguments",
        ));
    }
    for plain in parameters.plain() {
        let name = plain.name.unraw().to_string();
        if !variables.contains(&name) {
            let known = match variables.as_slice() {
                [] => "it has none".to_owned(),
                names => format!("it has `{}`", names.join("`, `")),
            };
            return Err(Error::new_spanned(
                &plain.name,
                format!("`{name}` is not a variable of the URI; {known}"),
            ));
        }
    }
    Ok(())
}

/// Returns the field for an argument of a tool.
fn field(parameter: &PlainParameter) -> TokenStream {
    let PlainParameter {
        name,
        kind,
        attributes,
    } = parameter;
    quote!(#(#attributes)* #name: #kind)
}

/// Returns the field for an argument of a prompt or a variable of a URI, whose value is a text.
fn text_field(parameter: &PlainParameter) -> Result<TokenStream> {
    let is_documentation = |attribute: &Attribute| attribute.path().is_ident("doc");
    let other = parameter
        .attributes
        .iter()
        .find(|one| !is_documentation(one));
    if let Some(other) = other {
        return Err(Error::new_spanned(
            other,
            "arguments of prompts and variables of URIs are texts, which are parsed with `FromStr`",
        ));
    }
    let PlainParameter { name, kind, .. } = parameter;
    let span = kind.span();
    Ok(match parameter.optional() {
        Some(_) => {
            let parse = LitStr::new("::mcpline::__private::optional_text", span);
            quote!(#[serde(default, deserialize_with = #parse)] #name: #kind)
        }
        None => {
            let parse = LitStr::new("::mcpline::__private::text", span);
            quote!(#[serde(deserialize_with = #parse)] #name: #kind)
        }
    })
}

fn prompt_argument(parameter: &PlainParameter) -> TokenStream {
    let name = parameter.name.unraw().to_string();
    let is_required = parameter.optional().is_none();
    let description = documentation(&parameter.attributes);
    let description = description.map(|text| quote!(.with_description(#text)));
    quote! {
        ::mcpline::protocol::vocabulary::PromptArgument::new(#name) #description .with_required(#is_required)
    }
}

/// Returns the closure that calls the method.
fn handler(method: &ImplItemFn, feature: &Feature, arguments: &TokenStream) -> TokenStream {
    let name = &method.sig.ident;
    let parameters = &feature.parameters;
    let receiver = parameters.has_receiver.then(|| quote!(&this,));
    let values = parameters.all.iter().map(|parameter| match parameter {
        Parameter::Context { is_reference: true } => quote!(&context),
        Parameter::Context {
            is_reference: false,
        } => quote!(::std::clone::Clone::clone(&context)),
        Parameter::Args(_) => quote!(arguments),
        Parameter::Plain(plain) => {
            let name = &plain.name;
            quote!(arguments.#name)
        }
    });
    let context = local(
        "context",
        parameters
            .all
            .iter()
            .any(|one| matches!(one, Parameter::Context { .. })),
    );
    let given = local(
        "arguments",
        parameters
            .all
            .iter()
            .any(|one| !matches!(one, Parameter::Context { .. })),
    );
    let call = quote_spanned!(name.span()=> Self::#name(#receiver #(#values),*));
    if feature.options.is_blocking {
        return quote! {
            ::mcpline::server::Blocking(move |#given: #arguments, #context: ::mcpline::Context| #call)
        };
    }
    let cloned = parameters
        .has_receiver
        .then(|| quote!(let this = ::std::sync::Arc::clone(&this);));
    let waited = method.sig.asyncness.map(|_| quote!(.await));
    quote! {
        move |#given: #arguments, #context: ::mcpline::Context| {
            #cloned
            async move { #call #waited }
        }
    }
}

/// Returns the name of a parameter of the closure; with an underscore if the closure does not use it.
fn local(name: &str, is_used: bool) -> Ident {
    let name = match is_used {
        true => name.to_owned(),
        false => format!("_{name}"),
    };
    Ident::new(&name, Span::call_site())
}
