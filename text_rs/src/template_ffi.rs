//! The C interface of the chat templates; contracts are in include/text_rs.h.

use std::ffi::c_char;

use crate::guard::{give, guarded, take};
use crate::template::Template;
use crate::tokenizer_ffi::TextRsBytes;

#[no_mangle]
pub unsafe extern "C" fn text_rs_template_new(
    source: TextRsBytes,
    out: *mut *mut Template,
) -> *mut c_char {
    guarded(|| {
        let source = std::str::from_utf8(unsafe { source.bytes() })
            .map_err(|_| "the template is not UTF-8".to_string())?;
        let template = Template::new(source)?;
        unsafe { *out = Box::into_raw(Box::new(template)) };
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_template_free(template: *mut Template) {
    if !template.is_null() {
        drop(unsafe { Box::from_raw(template) });
    }
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_template_render(
    template: *const Template,
    variables: TextRsBytes,
    now: i64,
    text: *mut *mut c_char,
    size: *mut usize,
) -> *mut c_char {
    guarded(|| {
        let variables = unsafe { variables.bytes() };
        let rendered = unsafe { &*template }.render(variables, now)?;
        let (data, length) = give(rendered.into_bytes());
        unsafe {
            *text = data.cast();
            *size = length;
        }
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn text_rs_free_text(text: *mut c_char, size: usize) {
    unsafe { take(text.cast::<u8>(), size) };
}
