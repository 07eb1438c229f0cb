//! Options as they are defined: a struct that is read from a JSON object.

/// Defines options. What is absent is as `Default` has it, unless it is among those that are needed; any other member is
/// an error.
macro_rules! options {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$member_meta:meta])* $member_vis:vis $member:ident: $kind:ty,)+
        }
        $(needs $($needed:ident),+;)?
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$member_meta])* $member_vis $member: $kind,)+
        }

        mcpline_protocol::members! {
            $name from $name::default(); others refused; needs $($($needed),+)?;
            $($member),+
        }
    };
}

pub(super) use options;
