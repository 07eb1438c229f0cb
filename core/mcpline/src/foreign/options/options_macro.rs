//! The macro that defines options: structs that are read from a JSON object.

/// Defines options. Absent members have their `Default`, unless they are listed under `needs`; unknown members are
/// errors.
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
