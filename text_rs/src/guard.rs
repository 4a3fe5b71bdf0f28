//! What every call across the C interface needs: messages, panics as messages, borrowed slices.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{c_char, CString};
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe};
use std::ptr::null_mut;
use std::sync::Once;

thread_local! {
    /// Where the last panic of a guarded call happened; None outside of guarded calls.
    static PANIC_AT: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Panics inside a guarded call are reported by its result, so the hook stays silent for them.
fn install_hook() {
    HOOK.call_once(|| {
        let former = take_hook();
        set_hook(Box::new(move |info| {
            let guarded = PANIC_AT.with(|at| match &mut *at.borrow_mut() {
                Some(place) => {
                    *place = info.location().map_or(String::new(), |l| {
                        format!(
                            " ({}:{})",
                            l.file().rsplit('/').next().unwrap_or(""),
                            l.line()
                        )
                    });
                    true
                }
                None => false,
            });
            if !guarded {
                former(info);
            }
        }));
    });
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "panic"
    }
}

/// Null on success, else a message for text_rs_free_message.
pub fn guarded(body: impl FnOnce() -> Result<(), String>) -> *mut c_char {
    install_hook();
    PANIC_AT.with(|at| *at.borrow_mut() = Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        let place = PANIC_AT.with(|at| at.borrow().clone().unwrap_or_default());
        Err(format!("{}{place}", panic_text(&*payload)))
    });
    PANIC_AT.with(|at| *at.borrow_mut() = None);
    match result {
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
