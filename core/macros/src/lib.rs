//! `#[mcpline::tools]`: turns methods into tools, resources and prompts. Documented where `mcpline` exports it.
//!
//! `feature` reads a method with its attribute (`options`, `parameters`), and `expand` writes the code that adds it to a
//! server. The generated code uses only the public API of `mcpline`, and its module `__private`.

mod expand;
mod feature;
mod options;
mod parameters;
#[cfg(test)]
mod tests;
mod uri_variables;

use proc_macro::TokenStream;
use quote::quote;
use syn::{Error, ItemImpl, parse_macro_input};

#[allow(missing_docs, reason = "documented where `mcpline` exports it")]
#[proc_macro_attribute]
pub fn tools(arguments: TokenStream, item: TokenStream) -> TokenStream {
    if !arguments.is_empty() {
        let arguments = proc_macro2::TokenStream::from(arguments);
        let error = Error::new_spanned(
            arguments,
            "`#[tools]` takes no options: set them in `#[tool(…)]`, `#[resource(…)]` and `#[prompt(…)]`",
        );
        return error.to_compile_error().into();
    }
    let mut block = parse_macro_input!(item as ItemImpl);
    let generated = expand::features(&mut block);
    let generated = generated.unwrap_or_else(|error| error.to_compile_error());
    // The block stays, so that an error here does not cause others elsewhere.
    quote!(#block #generated).into()
}
