//! The ATI R500 fragment processor ("US", unified shader; CTM calls it X1K FP) and the CTM model over it.
pub mod words;
