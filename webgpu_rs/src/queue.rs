//! Queues: submissions and writes.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::encoder::CommandBuffer;
use crate::object::{borrow, call, lock, release, Errors, Object};
use crate::types::*;

pub struct Queue {
    pub queue: wgpu::Queue,
    pub errors: Arc<Errors>,
}

impl Object for Queue {
    fn errors(&self) -> Option<&Arc<Errors>> {
        Some(&self.errors)
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuQueueRelease(queue: *const Queue) {
    unsafe { release("wgpuQueueRelease", queue) }
}

/// Submits all of the commands or, when one cannot be, none.
#[no_mangle]
pub unsafe extern "C" fn wgpuQueueSubmit(
    queue: *const Queue,
    count: usize,
    commands: *const *const CommandBuffer,
) {
    unsafe {
        call("wgpuQueueSubmit", queue, (), |queue| {
            if commands.is_null() && count > 0 {
                return Err("the commands' address is null".into());
            }
            queue.errors.alive()?;
            let mut list = Vec::with_capacity(count);
            for &handle in slice(commands, count) {
                let commands = borrow(handle, "command buffer")?;
                let taken = lock(&commands.commands).take();
                list.push(taken.ok_or("the commands were submitted before")?);
            }
            queue.queue.submit(list);
            Ok(())
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuQueueWriteBuffer(
    queue: *const Queue,
    buffer: *const Buffer,
    offset: u64,
    data: *const u8,
    size: usize,
) {
    unsafe {
        call("wgpuQueueWriteBuffer", queue, (), |queue| {
            queue.errors.alive()?;
            let buffer = borrow(buffer, "buffer")?;
            if data.is_null() && size > 0 {
                return Err("the data's address is null".into());
            }
            queue
                .queue
                .write_buffer(&buffer.buffer, offset, slice(data, size));
            Ok(())
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuQueueOnSubmittedWorkDone(
    queue: *const Queue,
    info: StatusCallbackInfo,
) -> Future {
    unsafe {
        let accepted = call("wgpuQueueOnSubmittedWorkDone", queue, false, |queue| {
            queue
                .queue
                .on_submitted_work_done(move || info.call(CALLBACK_SUCCESS, ""));
            Ok(true)
        });
        if !accepted {
            info.call(CALLBACK_ERROR, "the call failed");
        }
    }
    Future { id: 0 }
}

/// Nanoseconds of one tick.
#[no_mangle]
pub unsafe extern "C" fn wgpuQueueGetTimestampPeriod(queue: *const Queue) -> f32 {
    unsafe {
        call("wgpuQueueGetTimestampPeriod", queue, 0.0, |queue| {
            Ok(queue.queue.get_timestamp_period())
        })
    }
}
