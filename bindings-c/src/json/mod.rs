//! JSON for programs without a JSON library: reads arguments and results in place, and writes JSON.
//!
//! [`read`] and [`write`] are the functions of the header; [`value`] and [`writer`] implement them.

mod read;
mod value;
mod write;
mod writer;

pub use read::{
    mcpl_json_bool, mcpl_json_count, mcpl_json_double, mcpl_json_find, mcpl_json_int64,
    mcpl_json_item, mcpl_json_kind, mcpl_json_kind_of, mcpl_json_string,
};
pub use write::{
    mcpl_json, mcpl_json_begin_array, mcpl_json_begin_object, mcpl_json_clear, mcpl_json_end_array,
    mcpl_json_end_object, mcpl_json_free, mcpl_json_name, mcpl_json_new, mcpl_json_put_base64,
    mcpl_json_put_bool, mcpl_json_put_double, mcpl_json_put_int64, mcpl_json_put_json,
    mcpl_json_put_null, mcpl_json_put_string, mcpl_json_text,
};
