//! Enums of the library that mirror enums of other crates in the workspace.

/// Declares an enum with the variants of another enum, and conversions in both directions.
///
/// The mirror is `#[non_exhaustive]`. The mirrored enum is not `#[non_exhaustive]`, because the workspace matches its
/// own enums exhaustively. If the mirror lacks a variant of the mirrored enum, the conversion does not compile.
macro_rules! mirror {
    (
        $(#[$of_enum:meta])*
        pub enum $Mirror:ident {
            $($(#[$of_variant:meta])* $Variant:ident $({ $($(#[$of_field:meta])* $field:ident: $Field:ty,)* })?,)*
        }
        = $Original:ty
    ) => {
        $(#[$of_enum])*
        pub enum $Mirror {
            $($(#[$of_variant])* $Variant $({ $($(#[$of_field])* $field: $Field,)* })?,)*
        }

        impl From<$Original> for $Mirror {
            fn from(original: $Original) -> $Mirror {
                type Original = $Original;
                match original {
                    $(Original::$Variant $({ $($field),* })? => $Mirror::$Variant $({ $($field),* })?,)*
                }
            }
        }

        impl From<$Mirror> for $Original {
            fn from(mirror: $Mirror) -> $Original {
                type Original = $Original;
                match mirror {
                    $($Mirror::$Variant $({ $($field),* })? => Original::$Variant $({ $($field),* })?,)*
                }
            }
        }
    };
}

pub(super) use mirror;
