//! Java enums in bodies. fastjson writes the name and reads the name or the ordinal (the C++ and Python clients send
//! ordinals). Where fastjson makes null of anything else, we take the default: a heartbeat with one unknown word still counts.

/// Variants are listed in Java's order, as the ordinal is meaningful.
macro_rules! java_enum {
    ($(#[$doc:meta])* $kind:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $kind {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $kind {
            const ALL: &[$kind] = &[$($kind::$variant),*];

            /// Java's name of the constant.
            pub const fn name(self) -> &'static str {
                match self {
                    $($kind::$variant => $name,)*
                }
            }

            pub fn from_name(name: &str) -> Option<$kind> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }

            fn from_ordinal(ordinal: u64) -> Option<$kind> {
                usize::try_from(ordinal).ok().and_then(|at| Self::ALL.get(at)).copied()
            }
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$kind, D::Error> {
                struct NameOrOrdinal;

                impl serde::de::Visitor<'_> for NameOrOrdinal {
                    type Value = Option<$kind>;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("a name or ordinal of ", stringify!($kind)))
                    }

                    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                        Ok($kind::from_name(name))
                    }

                    fn visit_u64<E>(self, ordinal: u64) -> Result<Self::Value, E> {
                        Ok($kind::from_ordinal(ordinal))
                    }

                    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                        Ok(None)
                    }

                    fn visit_unit<E>(self) -> Result<Self::Value, E> {
                        Ok(None)
                    }
                }

                Ok(deserializer.deserialize_any(NameOrOrdinal)?.unwrap_or_default())
            }
        }
    };
}
