//! Enums whose values have names in files, options and messages.

/// Declares an enum. The declaration contains the name of each value next to the value.
///
/// Generates three items: the constant `ALL` (all values in the order of their declaration), the function `name`, and
/// an implementation of `Display` that writes the name.
///
/// ```
/// reconverge_isa::choices! {
///     /// The order of bytes.
///     #[derive(Hash)]
///     pub enum Order {
///         /// The least significant byte comes first.
///         Little = "little",
///         /// The most significant byte comes first.
///         Big = "big",
///     }
/// }
/// assert_eq!(Order::ALL.map(Order::name), ["little", "big"]);
/// assert_eq!(Order::Big.to_string(), "big");
/// ```
#[macro_export]
macro_rules! choices {
    ($(#[$of_enum:meta])* $vis:vis enum $Enum:ident { $($(#[$of_value:meta])* $Value:ident = $name:literal,)* }) => {
        $(#[$of_enum])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $Enum { $($(#[$of_value])* $Value,)* }

        impl $Enum {
            /// All values, in the order of their declaration.
            $vis const ALL: [$Enum; [$($name),*].len()] = [$($Enum::$Value),*];

            /// Returns the value's name in files, options and messages.
            $vis const fn name(self) -> &'static str {
                match self { $($Enum::$Value => $name),* }
            }
        }

        impl ::core::fmt::Display for $Enum {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result { f.write_str(self.name()) }
        }
    };
}
