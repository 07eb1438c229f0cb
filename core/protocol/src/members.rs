//! Deserializes structs from JSON objects member by member, in place. For the crates of this workspace.
//!
//! The code that serde derives for a struct keeps each member separately until all are read, buffers unknown members in
//! its own format, and, where nothing is buffered, also accepts arrays: several times the code for the same result.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};

/// Implements `Deserialize` for a struct. `derive(Members)` of `mcpline-derive` calls it for structs that are also
/// serialized; structs that are only read call it themselves.
///
/// Each member has the name of its field, which may be inside another field, or the name that is given. A missing
/// member keeps its value from `from`, unless it is required. Other members are rejected, ignored, or kept in the map
/// that is named. A duplicate member is an error.
#[doc(hidden)]
#[macro_export]
macro_rules! members {
    (
        $name:ident from $start:expr; others $others:ident; needs $($needed:ident),*;
        $($member:ident $(in $outer:ident)? $(= $word:literal)? $(=> $how:path)?),+ $(,)?
    ) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[allow(non_camel_case_types, reason = "the names of the members")]
                enum Field {
                    $($member,)+
                }

                struct StructVisitor;

                impl<'de> serde::de::Visitor<'de> for StructVisitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("struct ", stringify!($name)))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<$name, A::Error> {
                        let mut it = $start;
                        let mut members = $crate::members::Members::new(&[
                            $($crate::members!(@word $member $($word)?),)+
                        ]);
                        while let Some(named) = members.next(&mut map)? {
                            match named {
                                $($crate::members::MemberName::Known(at) if at == Field::$member as usize => {
                                    $crate::members!(@how $($how)?)(&mut map, &mut it$(.$outer)?.$member)?;
                                })+
                                $crate::members::MemberName::Known(_) => {}
                                $crate::members::MemberName::Other(name) => {
                                    $crate::members!(@other $others it map members name);
                                }
                            }
                        }
                        $(members.needs(Field::$needed as usize)?;)*
                        Ok(it)
                    }
                }

                deserializer.deserialize_map(StructVisitor)
            }
        }
    };
    (@word $member:ident) => {
        stringify!($member)
    };
    (@word $member:ident $word:literal) => {
        $word
    };
    (@how) => {
        $crate::members::read
    };
    (@how $how:path) => {
        $how
    };
    (@other refused $it:ident $map:ident $members:ident $name:ident) => {
        return Err($members.unknown(&$name))
    };
    (@other ignored $it:ident $map:ident $members:ident $name:ident) => {{
        drop($name);
        $map.next_value::<serde::de::IgnoredAny>()?;
    }};
    (@other $extra:ident $it:ident $map:ident $members:ident $name:ident) => {
        $it.$extra.insert($name, $map.next_value()?)
    };
}

/// Reads a value into its place. A separate function, so that it is compiled once per type of value instead of once per
/// member.
///
/// # Errors
///
/// If the value has another type.
#[doc(hidden)]
#[inline(never)]
pub fn read<'de, A: MapAccess<'de>, T: Deserialize<'de>>(
    map: &mut A,
    place: &mut T,
) -> Result<(), A::Error> {
    *place = map.next_value()?;
    Ok(())
}

/// The known members by number, and which of them have been read.
#[doc(hidden)]
#[derive(Debug)]
pub struct Members {
    names: &'static [&'static str],
    /// The number after the latest known member: members mostly come in the order of their definition.
    next: usize,
    seen: u64,
}

/// The name of a member.
#[doc(hidden)]
#[derive(Debug)]
pub enum MemberName {
    /// A known member, by its number.
    Known(usize),
    /// Any other member.
    Other(String),
}

impl Members {
    /// Starts with these known members.
    pub fn new(names: &'static [&'static str]) -> Self {
        assert!(names.len() <= 64, "more members than bits");
        Self {
            names,
            next: 0,
            seen: 0,
        }
    }

    /// Returns the name of the next member.
    ///
    /// # Errors
    ///
    /// If it was read before.
    pub fn next<'de, A: MapAccess<'de>>(
        &mut self,
        map: &mut A,
    ) -> Result<Option<MemberName>, A::Error> {
        let named = map.next_key_seed(MemberNameSeed(self.names, self.next))?;
        if let Some(MemberName::Known(at)) = named {
            if self.seen & (1 << at) != 0 {
                return Err(A::Error::duplicate_field(self.names[at]));
            }
            self.seen |= 1 << at;
            self.next = at + 1;
        }
        Ok(named)
    }

    /// Checks that this member was read.
    ///
    /// # Errors
    ///
    /// If it was not.
    pub fn needs<E: Error>(&self, at: usize) -> Result<(), E> {
        match self.seen & (1 << at) {
            0 => Err(E::missing_field(self.names[at])),
            _ => Ok(()),
        }
    }

    /// The error for an unknown member.
    pub fn unknown<E: Error>(&self, name: &str) -> E {
        E::unknown_field(name, self.names)
    }
}

/// Reads a name, most likely the one with this number or a later one.
struct MemberNameSeed(&'static [&'static str], usize);

impl<'de> DeserializeSeed<'de> for MemberNameSeed {
    type Value = MemberName;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<MemberName, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for MemberNameSeed {
    type Value = MemberName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<MemberName, E> {
        let (earlier, later) = self.0.split_at(self.1);
        let is_it = |known: &&str| *known == name;
        let at = match later.iter().position(is_it) {
            Some(at) => Some(self.1 + at),
            None => earlier.iter().position(is_it),
        };
        Ok(at.map_or_else(|| MemberName::Other(name.to_owned()), MemberName::Known))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Map, Value, json};

    #[derive(Debug, Default, PartialEq)]
    struct Measure {
        size: Option<u64>,
    }

    #[derive(Debug, Default, PartialEq)]
    struct Kept {
        name: String,
        measure: Measure,
        extra: Map<String, Value>,
    }

    members! {
        Kept from Kept::default(); others extra; needs name;
        name, size in measure = "sizeOf",
    }

    #[derive(Debug, Default, PartialEq)]
    struct Strict {
        name: String,
    }

    members! { Strict from Strict { name: "x".into() }; others refused; needs; name }

    #[derive(Debug, Default, PartialEq)]
    struct Lenient {
        name: String,
    }

    members! { Lenient from Lenient::default(); others ignored; needs; name => shouted }

    fn shouted<'de, A: serde::de::MapAccess<'de>>(
        map: &mut A,
        name: &mut String,
    ) -> Result<(), A::Error> {
        *name = map.next_value::<String>()?.to_uppercase();
        Ok(())
    }

    fn refused<T: serde::de::DeserializeOwned>(text: &str) -> String {
        match serde_json::from_str::<T>(text) {
            Ok(_) => panic!("{text} is read"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn unknown_members_are_kept_rejected_or_ignored() {
        let text = r#"{"new":[1],"name":"a","sizeOf":2}"#;
        let kept: Kept = serde_json::from_str(text).expect("read");
        assert_eq!((kept.name.as_str(), kept.measure.size), ("a", Some(2)));
        assert_eq!(Value::Object(kept.extra), json!({"new": [1]}));
        assert_eq!(
            refused::<Strict>(r#"{"new":1}"#),
            "unknown field `new`, expected `name` at line 1 column 6"
        );
        let lenient = Lenient::deserialize(json!({"new": 1, "name": "a"})).expect("read");
        assert_eq!(lenient.name, "A");
    }

    #[test]
    fn missing_members_keep_defaults_unless_required() {
        assert_eq!(
            serde_json::from_str::<Strict>("{}").expect("read").name,
            "x"
        );
        assert!(refused::<Kept>("{}").starts_with("missing field `name`"));
    }

    #[test]
    fn rejects_duplicate_members_and_wrong_types() {
        let twice = refused::<Kept>(r#"{"name":"a","name":"b"}"#);
        assert!(twice.starts_with("duplicate field `name`"), "{twice}");
        let list = refused::<Kept>("[]");
        assert!(
            list.starts_with("invalid type: sequence, expected struct Kept"),
            "{list}"
        );
    }
}
