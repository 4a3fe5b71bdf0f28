//! What every call across the C interface needs: messages, panics as messages, borrowed slices.

use std::ffi::{c_char, CString};
use std::ptr::null_mut;

/// Null on success, else a message for text_rs_free_message.
pub fn guarded(body: impl FnOnce() -> Result<(), String>) -> *mut c_char {
    match guard_rs::caught(body).unwrap_or_else(Err) {
        Ok(()) => null_mut(),
        Err(message) => {
            let line = message.replace('\0', " ");
            CString::new(line).unwrap_or_default().into_raw()
        }
    }
}

/// A slice from C; a null pointer gives an empty one.
///
/// # Safety
/// `data` is null or points at `size` values that outlive the use of the slice.
pub unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if data.is_null() || size == 0 {
        &[]
    } else {
        unsafe { std::slice::from_raw_parts(data, size) }
    }
}

/// Gives a vector to C: pointer and length of an exact allocation.
pub fn give<T>(values: Vec<T>) -> (*mut T, usize) {
    let values = values.into_boxed_slice();
    let size = values.len();
    (Box::into_raw(values).cast(), size)
}

/// Takes back what `give` gave.
///
/// # Safety
/// The pair comes from `give` and was not taken back yet.
pub unsafe fn take<T>(data: *mut T, size: usize) {
    if !data.is_null() {
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(data, size)) });
    }
}
