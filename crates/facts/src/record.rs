//! One table per record gives its readings, its form in a sheet, and the merge of two of them.

/// Declares a record of readings (`$name`) and its form in a `vramwarden.facts/1` sheet (`$sheet`).
///
/// Each field has the key under which the sheet states it. Fields under `nested` are records themselves.
macro_rules! record {
    (
        $(#[$meta:meta])*
        $name:ident / $sheet:ident {
            $( $(#[$field_meta:meta])* $field:ident ($key:literal): $type:ty, )*
        }
        $( nested { $( $(#[$nested_meta:meta])* $nested:ident ($nested_key:literal): $nested_type:ident / $nested_sheet:ident, )* } )?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $crate::reading::Reading<$type>, )*
            $( $( $(#[$nested_meta])* pub $nested: $nested_type, )* )?
        }

        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub(crate) struct $sheet {
            $( #[serde(rename = $key, skip_serializing_if = "Option::is_none")] pub(crate) $field: Option<$type>, )*
            $( $( #[serde(rename = $nested_key, skip_serializing_if = "crate::sheet::is_default",
                    deserialize_with = "crate::object::object")]
                  pub(crate) $nested: $nested_sheet, )* )?
        }

        impl $name {
            pub(crate) fn from_sheet(sheet: $sheet, stated: &$crate::sheet::Stated, path: &str) -> Self {
                Self {
                    $( $field: stated.reading(sheet.$field, path, $key), )*
                    $( $( $nested: $nested_type::from_sheet(sheet.$nested, stated, &format!("{path}.{}", $nested_key)), )* )?
                }
            }

            pub(crate) fn to_sheet(&self) -> $sheet {
                $sheet {
                    $( $field: self.$field.value().cloned(), )*
                    $( $( $nested: self.$nested.to_sheet(), )* )?
                }
            }

            /// Calls `see` with the path and the reason of every reading that is missing.
            pub(crate) fn each_missing(&self, path: &str, see: &mut dyn FnMut(String, &$crate::reading::Missing)) {
                $( if let $crate::reading::Reading::Missing(why) = &self.$field { see(format!("{path}.{}", $key), why); } )*
                $( $( self.$nested.each_missing(&format!("{path}.{}", $nested_key), see); )* )?
            }

            pub(crate) fn merge(&mut self, other: Self, path: &str, conflicts: &mut Vec<$crate::facts::Conflict>) {
                $( $crate::merge::reading(&mut self.$field, other.$field, path, $key, conflicts); )*
                $( $( self.$nested.merge(other.$nested, &format!("{path}.{}", $nested_key), conflicts); )* )?
            }
        }
    };
}
