//! The parameters of a method: the receiver, the arguments and the context.

use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, Pat, PatType, PathArguments, ReceiverKind,
    Result, Signature, Type,
};

/// The parameters of a method, apart from the receiver.
pub(crate) struct Parameters {
    /// Whether the method takes `&self`.
    pub(crate) has_receiver: bool,
    /// In the order of the source.
    pub(crate) all: Vec<Parameter>,
}

pub(crate) enum Parameter {
    /// `ctx: Context` or `ctx: &Context`.
    Context { is_reference: bool },
    /// `Args(add): Args<Add>`: all arguments, in one type.
    Args(Box<Type>),
    /// `city: String`: one argument.
    Plain(Box<PlainParameter>),
}

/// One argument, as a parameter of its own.
pub(crate) struct PlainParameter {
    pub(crate) name: Ident,
    pub(crate) kind: Type,
    /// Documentation, and attributes for serde and schemars.
    pub(crate) attributes: Vec<Attribute>,
}

impl PlainParameter {
    /// Returns `T` if the type is `Option<T>`.
    pub(crate) fn optional(&self) -> Option<&Type> {
        let Type::Path(path) = &self.kind else {
            return None;
        };
        let last = path.path.segments.last()?;
        match &last.arguments {
            PathArguments::AngleBracketed(arguments) if last.ident == "Option" => {
                match arguments.args.first()? {
                    GenericArgument::Type(kind) => Some(kind),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

impl Parameters {
    /// Reads the parameters, and removes the attributes that only the macro understands.
    pub(crate) fn take(signature: &mut Signature) -> Result<Self> {
        let mut parameters = Self {
            has_receiver: false,
            all: Vec::new(),
        };
        for input in &mut signature.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    if !matches!(receiver.kind, ReceiverKind::Reference(_, _, None)) {
                        return Err(Error::new_spanned(
                            receiver,
                            "calls run at the same time, so the receiver is `&self`: put what changes into a `Mutex` or \
                             an atomic",
                        ));
                    }
                    parameters.has_receiver = true;
                }
                FnArg::Typed(typed) => parameters.all.push(parameter(typed)?),
            }
        }
        parameters.check()?;
        Ok(parameters)
    }

    fn check(&self) -> Result<()> {
        let mut args = 0;
        for parameter in &self.all {
            args += usize::from(matches!(parameter, Parameter::Args(_)));
            if let Parameter::Args(kind) = parameter
                && (args > 1 || self.plain().next().is_some())
            {
                return Err(Error::new_spanned(
                    kind,
                    "`Args` holds all arguments: it can't be combined with other ones",
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn plain(&self) -> impl Iterator<Item = &PlainParameter> {
        self.all.iter().filter_map(|parameter| match parameter {
            Parameter::Plain(plain) => Some(&**plain),
            _ => None,
        })
    }

    pub(crate) fn args(&self) -> Option<&Type> {
        self.all.iter().find_map(|parameter| match parameter {
            Parameter::Args(kind) => Some(&**kind),
            _ => None,
        })
    }
}

fn parameter(typed: &mut PatType) -> Result<Parameter> {
    if let Type::Reference(reference) = &*typed.ty {
        return match last_segment(&reference.elem) {
            Some(name) if name == "Context" && reference.mutability.is_none() => {
                Ok(Parameter::Context { is_reference: true })
            }
            _ => Err(Error::new_spanned(
                &typed.ty,
                "arguments are decoded for the method, which owns them: use `String` instead of `&str`, `Vec<T>` instead \
                 of `&[T]`",
            )),
        };
    }
    if matches!(*typed.ty, Type::ImplTrait(_)) {
        return Err(Error::new_spanned(
            &typed.ty,
            "an argument needs a type that can be decoded, not `impl Trait`",
        ));
    }
    match last_segment(&typed.ty) {
        Some(name) if name == "Context" => {
            return Ok(Parameter::Context {
                is_reference: false,
            });
        }
        Some(name) if name == "Args" => {
            return Ok(Parameter::Args(typed.ty.clone()));
        }
        _ => {}
    }
    let Pat::Ident(pattern) = &*typed.pat else {
        return Err(Error::new_spanned(
            &typed.pat,
            "a parameter without a name can't be an argument: name it, or take all arguments as `Args(…): Args<T>`",
        ));
    };
    if pattern.by_ref.is_some() || pattern.subpat.is_some() {
        return Err(Error::new_spanned(
            &typed.pat,
            "an argument is a plain parameter: `name: Type`",
        ));
    }
    Ok(Parameter::Plain(Box::new(PlainParameter {
        name: pattern.ident.clone(),
        kind: (*typed.ty).clone(),
        attributes: take_attributes(&mut typed.attrs),
    })))
}

/// Takes the documentation and the attributes for serde and schemars, which a parameter can't have in Rust.
fn take_attributes(attributes: &mut Vec<Attribute>) -> Vec<Attribute> {
    let is_taken = |attribute: &Attribute| {
        ["doc", "serde", "schemars"]
            .iter()
            .any(|name| attribute.path().is_ident(name))
    };
    let (taken, left) = std::mem::take(attributes).into_iter().partition(is_taken);
    *attributes = left;
    taken
}

fn last_segment(kind: &Type) -> Option<&Ident> {
    match kind {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}
