//! Panics as messages: what every call across a C interface needs.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, set_hook, take_hook, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Guarded calls of this thread that are running now.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Where the last panic of a guarded call happened, as " (file:line)".
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

static HOOK: Once = Once::new();

/// Panics inside a guarded call are reported by its result, so the hook stays silent for them.
fn install_hook() {
    HOOK.call_once(|| {
        let former = take_hook();
        set_hook(Box::new(move |info| {
            if DEPTH.get() == 0 {
                return former(info);
            }
            PLACE.with_borrow_mut(|place| {
                *place = info.location().map_or(String::new(), |l| {
                    let file = l.file().rsplit('/').next().unwrap_or("");
                    format!(" ({file}:{})", l.line())
                });
            });
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

/// What `body` returns; a panic becomes its message with the place.
pub fn caught<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    install_hook();
    DEPTH.set(DEPTH.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(body));
    DEPTH.set(DEPTH.get() - 1);
    result.map_err(|payload| {
        let place = PLACE.take();
        let text = format!("{}{place}", panic_text(&*payload));
        // A payload may panic when it is dropped: that must not leave this function.
        std::mem::forget(payload);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::caught;

    #[test]
    fn a_panic_becomes_its_message_and_place() {
        assert_eq!(caught(|| 7), Ok(7));
        let message = caught(|| -> u32 { panic!("no {}", "way") }).unwrap_err();
        assert!(message.starts_with("no way (lib.rs:"), "{message}");
    }

    #[test]
    fn calls_nest() {
        let outer = caught(|| {
            assert!(caught(|| -> u32 { panic!("inner") }).is_err());
            panic!("outer")
        });
        let message: Result<(), String> = outer;
        assert!(message.unwrap_err().starts_with("outer ("));
    }
}
