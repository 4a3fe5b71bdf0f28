//! Buffers and mapping them for reading.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::device::{create, Device};
use crate::object::{borrow, call, give, label, lock, release, Errors, Object};
use crate::types::*;

pub struct Buffer {
    pub buffer: wgpu::Buffer,
    errors: Arc<Errors>,
    mapping: Arc<Mutex<Mapping>>,
}

/// The crate panics where a mapping is misused, so this keeps track of it in front.
enum Mapping {
    None,
    Pending,
    Mapped(Range<u64>, Option<wgpu::BufferView>),
    /// A mapping failed: the crate takes the buffer for mapped from then on.
    Failed,
}

impl Object for Buffer {
    fn errors(&self) -> Option<&Arc<Errors>> {
        Some(&self.errors)
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuDeviceCreateBuffer(
    device: *const Device,
    descriptor: *const BufferDescriptor,
) -> *const Buffer {
    unsafe {
        create("wgpuDeviceCreateBuffer", device, |device| {
            let descriptor = borrow(descriptor, "descriptor")?;
            let name = descriptor.label.text();
            if descriptor.mapped_at_creation != 0 {
                return Err("buffers mapped at creation are not supported".into());
            }
            let usage = u32::try_from(descriptor.usage).ok();
            let usage = usage.and_then(wgpu::BufferUsages::from_bits);
            let buffer = device.device.create_buffer(&wgpu::BufferDescriptor {
                label: label(&name),
                size: descriptor.size,
                usage: usage.ok_or_else(|| format!("unknown usage {:#x}", descriptor.usage))?,
                mapped_at_creation: false,
            });
            Ok(give(Buffer {
                buffer,
                errors: device.errors.clone(),
                mapping: Arc::new(Mutex::new(Mapping::None)),
            }))
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuBufferRelease(buffer: *const Buffer) {
    unsafe { release("wgpuBufferRelease", buffer) }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuBufferDestroy(buffer: *const Buffer) {
    unsafe {
        call("wgpuBufferDestroy", buffer, (), |buffer| {
            buffer.buffer.destroy();
            Ok(())
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuBufferGetUsage(buffer: *const Buffer) -> Flags {
    unsafe {
        call("wgpuBufferGetUsage", buffer, 0, |buffer| {
            Ok(buffer.buffer.usage().bits().into())
        })
    }
}

/// The bytes to map, of a request that the crate would not panic at.
fn check(buffer: &Buffer, mode: Flags, offset: usize, size: usize) -> Result<Range<u64>, String> {
    let total = buffer.buffer.size();
    let begin = offset as u64;
    let end = if size == WHOLE_MAP {
        total
    } else {
        begin.saturating_add(size as u64)
    };
    if mode != MAP_READ {
        return Err("only mapping for reading is supported".into());
    }
    if !buffer.buffer.usage().contains(wgpu::BufferUsages::MAP_READ) {
        return Err("the buffer's usage does not allow mapping".into());
    }
    if begin >= end || end > total || begin % 8 != 0 || end % 4 != 0 {
        return Err(format!("cannot map bytes {begin} to {end} of {total}"));
    }
    match *lock(&buffer.mapping) {
        Mapping::None => Ok(begin..end),
        Mapping::Failed => Err("an earlier mapping failed".into()),
        Mapping::Pending | Mapping::Mapped(..) => Err("the buffer is already mapped".into()),
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuBufferMapAsync(
    buffer: *const Buffer,
    mode: Flags,
    offset: usize,
    size: usize,
    info: StatusCallbackInfo,
) -> Future {
    // Called once: by the crate or, when it never got that far, here.
    let pending = Arc::new(Mutex::new(Some(info)));
    let accepted = unsafe {
        call("wgpuBufferMapAsync", buffer, false, |buffer| {
            let range = check(buffer, mode, offset, size)?;
            let (mapping, pending, mapped) =
                (buffer.mapping.clone(), pending.clone(), range.clone());
            *lock(&buffer.mapping) = Mapping::Pending;
            buffer
                .buffer
                .map_async(wgpu::MapMode::Read, range, move |result| {
                    let mut state = lock(&mapping);
                    let (status, message) = match (result.is_ok(), &*state) {
                        (true, Mapping::Pending) => (CALLBACK_SUCCESS, ""),
                        (false, Mapping::Pending) => {
                            (CALLBACK_ERROR, "the buffer cannot be mapped")
                        }
                        _ => (
                            CALLBACK_ABORTED,
                            "the buffer was unmapped before it was mapped",
                        ),
                    };
                    match status {
                        CALLBACK_SUCCESS => *state = Mapping::Mapped(mapped, None),
                        CALLBACK_ERROR => *state = Mapping::Failed,
                        _ => {}
                    }
                    drop(state);
                    let info = lock(&pending).take();
                    if let Some(info) = info {
                        info.call(status, message);
                    }
                });
            Ok(true)
        })
    };
    if !accepted {
        let info = lock(&pending).take();
        if let Some(info) = info {
            info.call(CALLBACK_ERROR, "the buffer cannot be mapped");
        }
    }
    Future { id: 0 }
}

/// Null when the range is not mapped. The bytes are there until the buffer is unmapped or released.
#[no_mangle]
pub unsafe extern "C" fn wgpuBufferGetConstMappedRange(
    buffer: *const Buffer,
    offset: usize,
    size: usize,
) -> *const u8 {
    unsafe {
        call(
            "wgpuBufferGetConstMappedRange",
            buffer,
            std::ptr::null(),
            |buffer| {
                let mut state = lock(&buffer.mapping);
                let Mapping::Mapped(range, view) = &mut *state else {
                    return Err("the buffer is not mapped".into());
                };
                let begin = offset as u64;
                let end = if size == WHOLE_MAP {
                    range.end
                } else {
                    begin.saturating_add(size as u64)
                };
                if begin < range.start || end > range.end || begin > end {
                    let (first, last) = (range.start, range.end);
                    return Err(format!(
                        "bytes {begin} to {end} are not among {first} to {last}"
                    ));
                }
                let at = (begin - range.start) as usize;
                let view = match view {
                    Some(view) => view,
                    None => view.insert(buffer.buffer.get_mapped_range(range.clone())),
                };
                Ok(view.as_ptr().add(at))
            },
        )
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuBufferUnmap(buffer: *const Buffer) {
    unsafe {
        call("wgpuBufferUnmap", buffer, (), |buffer| {
            let mut state = lock(&buffer.mapping);
            if matches!(*state, Mapping::None | Mapping::Failed) {
                return Ok(());
            }
            *state = Mapping::None;
            // The callback of a mapping that was still to come is called in here.
            drop(state);
            buffer.buffer.unmap();
            Ok(())
        })
    }
}
