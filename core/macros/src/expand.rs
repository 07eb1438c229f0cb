//! The generated code: an implementation of `mcpline::server::Features`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Error, FnArg, Ident, ImplItem, ImplItemFn, ItemImpl, LitStr, Result, ReturnType,
    Signature,
};

use crate::feature::{Feature, documentation};
use crate::options::Kind;
use crate::parameters::{Parameter, Parameters, PlainParameter};
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
    let methods: Vec<Signature> = block.items.iter().filter_map(signature).collect();
    let mut is_empty = true;
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else {
            continue;
        };
        match Feature::take(method).and_then(|feature| {
            feature
                .map(|feature| feature_statement(method, &feature, &methods))
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

fn signature(item: &ImplItem) -> Option<Signature> {
    match item {
        ImplItem::Fn(method) => Some(method.sig.clone()),
        _ => None,
    }
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
fn feature_statement(
    method: &ImplItemFn,
    feature: &Feature,
    methods: &[Signature],
) -> Result<TokenStream> {
    let conditions = method
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"));
    let arguments = arguments(feature)?;
    let handler = handler(
        &method.sig,
        &feature.parameters,
        &arguments.kind,
        feature.options.is_blocking,
    );
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
    let values = options.values.iter();
    let values = values.map(|(name, value)| quote!(.#name(#value)));
    // The type of the items of an empty list would be unknown.
    let lists = options.lists.iter().filter(|(_, items)| !items.is_empty());
    let lists = lists.map(|(name, items)| quote!(.#name([#(#items),*])));
    let icons = &options.icons;
    let icons = (!icons.is_empty()).then(|| quote!(.icons(::std::vec![#(#icons),*])));
    let list = options.list.as_ref();
    let list = list.map(|name| template_list(name, options.uri.as_ref(), methods));
    let list = list.transpose()?;
    let switches = options.switches.iter();
    let switches = switches.map(|(name, is_on)| quote!(.#name(#is_on)));
    let declared = &arguments.declared;
    Ok(quote! {
        #(#conditions)*
        {
            #declared
            let handler = #handler;
            let definition = #created;
            server.add(definition #description #(#values)* #icons #(#lists)* #list #(#switches)*)?;
        }
    })
}

/// Returns the call that sets the method which lists resources of a template.
fn template_list(name: &Ident, uri: Option<&LitStr>, methods: &[Signature]) -> Result<TokenStream> {
    if !uri.is_some_and(is_template) {
        return Err(Error::new_spanned(
            name,
            "the URI of this resource has no variables: only the resources of a template are listed",
        ));
    }
    let Some(signature) = methods.iter().find(|method| method.ident == *name) else {
        return Err(Error::new_spanned(
            name,
            format!("this block has no method `{name}`"),
        ));
    };
    let parameters = Parameters::take(&mut signature.clone())?;
    if parameters.args().is_some() || parameters.plain().next().is_some() {
        return Err(Error::new_spanned(
            &signature.inputs,
            "a method that lists resources takes the context, and no arguments",
        ));
    }
    let arguments = quote!(::mcpline::server::NoArguments);
    let handler = handler(signature, &parameters, &arguments, false);
    Ok(quote!(.list(#handler)))
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
fn handler(
    method: &Signature,
    parameters: &Parameters,
    arguments: &TokenStream,
    is_blocking: bool,
) -> TokenStream {
    let name = &method.ident;
    let receiver = parameters.has_receiver.then(|| quote!(&this,));
    let this = parameters
        .has_receiver
        .then(|| quote!(let this = ::std::sync::Arc::clone(self);));
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
    let closure = if is_blocking {
        quote! {
            ::mcpline::server::Blocking(move |#given: #arguments, #context: ::mcpline::Context| #call)
        }
    } else {
        let cloned = parameters
            .has_receiver
            .then(|| quote!(let this = ::std::sync::Arc::clone(&this);));
        let waited = method.asyncness.map(|_| quote!(.await));
        quote! {
            move |#given: #arguments, #context: ::mcpline::Context| {
                #cloned
                async move { #call #waited }
            }
        }
    };
    quote!({ #this #closure })
}

/// Returns the name of a parameter of the closure; with an underscore if the closure does not use it.
fn local(name: &str, is_used: bool) -> Ident {
    let name = match is_used {
        true => name.to_owned(),
        false => format!("_{name}"),
    };
    Ident::new(&name, Span::call_site())
}
