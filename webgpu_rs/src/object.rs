//! Handles, and what every exported function does: errors and panics become errors of the device.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::types::*;

/// A lock that a panic in an earlier call did not spoil.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the errors of one device go, until the device is released.
pub struct Errors {
    targets: Mutex<Option<(ErrorCallbackInfo, LostCallbackInfo)>>,
    lost: AtomicBool,
}

/// Errors of calls that know no device go to the one made last.
static NEWEST: Mutex<Weak<Errors>> = Mutex::new(Weak::new());

impl Errors {
    pub fn new(error: ErrorCallbackInfo, lost: LostCallbackInfo) -> Arc<Errors> {
        let errors = Arc::new(Errors {
            targets: Mutex::new(Some((error, lost))),
            lost: AtomicBool::new(false),
        });
        *lock(&NEWEST) = Arc::downgrade(&errors);
        errors
    }

    /// After this the callbacks are not called any more.
    pub fn close(&self) {
        *lock(&self.targets) = None;
    }

    /// Calls the uncaptured-error callback, on this thread, before it returns.
    pub fn report(&self, kind: u32, message: &str) {
        let targets = *lock(&self.targets);
        if let Some((info, _)) = targets {
            if let Some(callback) = info.callback {
                let none = std::ptr::null();
                // SAFETY: the program keeps its callback valid until it releases the device.
                unsafe { callback(&none, kind, StringView::of(message), info.user1, info.user2) };
            }
        }
    }

    /// An error once the device is lost.
    pub fn alive(&self) -> Result<(), String> {
        if self.lost.load(Ordering::Acquire) {
            return Err("the device is lost".into());
        }
        Ok(())
    }

    /// Calls the device-lost callback, once.
    pub fn lose(&self, reason: u32, message: &str) {
        if self.lost.swap(true, Ordering::AcqRel) {
            return;
        }
        let targets = *lock(&self.targets);
        if let Some((_, info)) = targets {
            if let Some(callback) = info.callback {
                let none = std::ptr::null();
                // SAFETY: as above.
                unsafe {
                    callback(
                        &none,
                        reason,
                        StringView::of(message),
                        info.user1,
                        info.user2,
                    )
                };
            }
        }
    }
}

fn report(errors: Option<&Errors>, kind: u32, message: &str) {
    match errors {
        Some(errors) => errors.report(kind, message),
        None => {
            let newest = lock(&NEWEST).upgrade();
            if let Some(errors) = newest {
                errors.report(kind, message);
            }
        }
    }
}

/// What handles point at. All of them are `Arc`s given away with `give`.
pub trait Object {
    /// None: the object belongs to no device.
    fn errors(&self) -> Option<&Arc<Errors>>;
}

pub fn give<T: Object>(object: T) -> *const T {
    Arc::into_raw(Arc::new(object))
}

/// # Safety
/// `handle` is null or comes from `give` and is not released yet.
pub unsafe fn borrow<'a, T>(handle: *const T, what: &str) -> Result<&'a T, String> {
    unsafe { handle.as_ref() }.ok_or_else(|| format!("the {what} is null"))
}

/// Runs `body` with the object. An error or a panic is reported as an error of the device, and the
/// call returns `fallback`.
///
/// # Safety
/// `handle` is null or comes from `give` and is not released yet.
pub unsafe fn call<T: Object, R>(
    name: &str,
    handle: *const T,
    fallback: R,
    body: impl FnOnce(&T) -> Result<R, String>,
) -> R {
    let Some(object) = (unsafe { handle.as_ref() }) else {
        report(
            None,
            ERROR_VALIDATION,
            &format!("{name}: the handle is null"),
        );
        return fallback;
    };
    let (kind, message) = match guard_rs::caught(|| body(object)) {
        Ok(Ok(value)) => return value,
        Ok(Err(message)) => (ERROR_VALIDATION, message),
        Err(message) => (ERROR_INTERNAL, message),
    };
    let errors = object.errors().map(AsRef::as_ref);
    report(errors, kind, &format!("{name}: {message}"));
    fallback
}

/// Gives back one reference.
///
/// # Safety
/// `handle` is null or comes from `give` and is not released yet.
pub unsafe fn release<T: Object>(name: &str, handle: *const T) {
    let Some(object) = (unsafe { handle.as_ref() }) else {
        return report(
            None,
            ERROR_VALIDATION,
            &format!("{name}: the handle is null"),
        );
    };
    let errors = object.errors().cloned();
    if let Err(message) = guard_rs::caught(|| drop(unsafe { Arc::from_raw(handle) })) {
        report(
            errors.as_deref(),
            ERROR_INTERNAL,
            &format!("{name}: {message}"),
        );
    }
}

/// An error with its causes, a line each.
pub fn error_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        text += &format!("\n{one}");
        cause = one.source();
    }
    text
}

/// The label of a descriptor, None when it has none.
pub fn label(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
