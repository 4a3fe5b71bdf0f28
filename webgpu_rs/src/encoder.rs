//! Command encoders, compute passes, command buffers.

use std::ptr::null;
use std::sync::{Arc, Mutex};

use crate::buffer::Buffer;
use crate::device::{create, Device};
use crate::object::{borrow, call, give, label, lock, release, Errors, Object};
use crate::pipeline::{BindGroup, ComputePipeline, QuerySet};
use crate::types::*;

pub struct CommandEncoder {
    /// None: finished.
    encoder: Mutex<Option<wgpu::CommandEncoder>>,
    errors: Arc<Errors>,
}

pub struct ComputePass {
    /// None: ended.
    pass: Mutex<Option<wgpu::ComputePass<'static>>>,
    errors: Arc<Errors>,
}

pub struct CommandBuffer {
    /// None: submitted.
    pub commands: Mutex<Option<wgpu::CommandBuffer>>,
    errors: Arc<Errors>,
}

impl Object for CommandEncoder {
    fn errors(&self) -> Option<&Arc<Errors>> {
        Some(&self.errors)
    }
}
impl Object for ComputePass {
    fn errors(&self) -> Option<&Arc<Errors>> {
        Some(&self.errors)
    }
}
impl Object for CommandBuffer {
    fn errors(&self) -> Option<&Arc<Errors>> {
        Some(&self.errors)
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuDeviceCreateCommandEncoder(
    device: *const Device,
    descriptor: *const LabelDescriptor,
) -> *const CommandEncoder {
    unsafe {
        create("wgpuDeviceCreateCommandEncoder", device, |device| {
            let name = descriptor.as_ref().map_or("".into(), |d| d.label.text());
            let encoder = device
                .device
                .create_command_encoder(&wgpu::CommandEncoderDescriptor {
                    label: label(&name),
                });
            Ok(give(CommandEncoder {
                encoder: Mutex::new(Some(encoder)),
                errors: device.errors.clone(),
            }))
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuCommandEncoderRelease(encoder: *const CommandEncoder) {
    unsafe { release("wgpuCommandEncoderRelease", encoder) }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuCommandBufferRelease(commands: *const CommandBuffer) {
    unsafe { release("wgpuCommandBufferRelease", commands) }
}

/// Runs `body` with the open encoder.
unsafe fn encode<R>(
    name: &str,
    encoder: *const CommandEncoder,
    fallback: R,
    body: impl FnOnce(&mut wgpu::CommandEncoder, &CommandEncoder) -> Result<R, String>,
) -> R {
    unsafe {
        call(name, encoder, fallback, |encoder| {
            let mut open = lock(&encoder.encoder);
            body(open.as_mut().ok_or("the encoder is finished")?, encoder)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuCommandEncoderFinish(
    encoder: *const CommandEncoder,
    _descriptor: *const LabelDescriptor,
) -> *const CommandBuffer {
    unsafe {
        call("wgpuCommandEncoderFinish", encoder, null(), |encoder| {
            let open = lock(&encoder.encoder).take();
            let commands = open.ok_or("the encoder is finished")?.finish();
            Ok(give(CommandBuffer {
                commands: Mutex::new(Some(commands)),
                errors: encoder.errors.clone(),
            }))
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuCommandEncoderCopyBufferToBuffer(
    encoder: *const CommandEncoder,
    source: *const Buffer,
    source_offset: u64,
    destination: *const Buffer,
    destination_offset: u64,
    size: u64,
) {
    unsafe {
        encode(
            "wgpuCommandEncoderCopyBufferToBuffer",
            encoder,
            (),
            |encoder, _| {
                let source = &borrow(source, "source")?.buffer;
                let destination = &borrow(destination, "destination")?.buffer;
                let size = (size != UNDEFINED_U64).then_some(size);
                encoder.copy_buffer_to_buffer(
                    source,
                    source_offset,
                    destination,
                    destination_offset,
                    size,
                );
                Ok(())
            },
        )
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuCommandEncoderClearBuffer(
    encoder: *const CommandEncoder,
    buffer: *const Buffer,
    offset: u64,
    size: u64,
) {
    unsafe {
        encode(
            "wgpuCommandEncoderClearBuffer",
            encoder,
            (),
            |encoder, _| {
                let size = (size != UNDEFINED_U64).then_some(size);
                encoder.clear_buffer(&borrow(buffer, "buffer")?.buffer, offset, size);
                Ok(())
            },
        )
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuCommandEncoderResolveQuerySet(
    encoder: *const CommandEncoder,
    queries: *const QuerySet,
    first: u32,
    count: u32,
    destination: *const Buffer,
    offset: u64,
) {
    unsafe {
        encode(
            "wgpuCommandEncoderResolveQuerySet",
            encoder,
            (),
            |encoder, _| {
                let queries = &borrow(queries, "query set")?.queries;
                let destination = &borrow(destination, "destination")?.buffer;
                let last = first.checked_add(count).ok_or("too many queries")?;
                encoder.resolve_query_set(queries, first..last, destination, offset);
                Ok(())
            },
        )
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuCommandEncoderBeginComputePass(
    encoder: *const CommandEncoder,
    descriptor: *const ComputePassDescriptor,
) -> *const ComputePass {
    unsafe {
        encode(
            "wgpuCommandEncoderBeginComputePass",
            encoder,
            null(),
            |open, encoder| {
                let descriptor = descriptor.as_ref();
                let name = descriptor.map_or("".into(), |d| d.label.text());
                let writes = descriptor.and_then(|d| d.timestamps.as_ref());
                let index = |i: u32| (i != UNDEFINED_U32).then_some(i);
                let timestamp_writes = match writes {
                    None => None,
                    Some(writes) => Some(wgpu::ComputePassTimestampWrites {
                        query_set: &borrow(writes.query_set, "query set")?.queries,
                        beginning_of_pass_write_index: index(writes.begin),
                        end_of_pass_write_index: index(writes.end),
                    }),
                };
                let pass = open.begin_compute_pass(&wgpu::ComputePassDescriptor {
                    label: label(&name),
                    timestamp_writes,
                });
                Ok(give(ComputePass {
                    pass: Mutex::new(Some(pass.forget_lifetime())),
                    errors: encoder.errors.clone(),
                }))
            },
        )
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuComputePassEncoderRelease(pass: *const ComputePass) {
    unsafe { release("wgpuComputePassEncoderRelease", pass) }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuComputePassEncoderEnd(pass: *const ComputePass) {
    unsafe {
        call("wgpuComputePassEncoderEnd", pass, (), |pass| {
            let open = lock(&pass.pass).take();
            drop(open.ok_or("the pass has ended")?);
            Ok(())
        })
    }
}

/// Runs `body` with the open pass.
unsafe fn record(
    name: &str,
    pass: *const ComputePass,
    body: impl FnOnce(&mut wgpu::ComputePass<'static>) -> Result<(), String>,
) {
    unsafe {
        call(name, pass, (), |pass| {
            body(lock(&pass.pass).as_mut().ok_or("the pass has ended")?)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuComputePassEncoderSetPipeline(
    pass: *const ComputePass,
    pipeline: *const ComputePipeline,
) {
    unsafe {
        record("wgpuComputePassEncoderSetPipeline", pass, |pass| {
            pass.set_pipeline(&borrow(pipeline, "pipeline")?.pipeline);
            Ok(())
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuComputePassEncoderSetBindGroup(
    pass: *const ComputePass,
    index: u32,
    group: *const BindGroup,
    offset_count: usize,
    offsets: *const u32,
) {
    unsafe {
        record("wgpuComputePassEncoderSetBindGroup", pass, |pass| {
            let group = group.as_ref().map(|group| &group.group);
            pass.set_bind_group(index, group, slice(offsets, offset_count));
            Ok(())
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuComputePassEncoderSetImmediates(
    pass: *const ComputePass,
    offset: u32,
    data: *const u8,
    size: usize,
) {
    unsafe {
        record("wgpuComputePassEncoderSetImmediates", pass, |pass| {
            if data.is_null() && size > 0 {
                return Err("the data's address is null".into());
            }
            pass.set_immediates(offset, slice(data, size));
            Ok(())
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuComputePassEncoderDispatchWorkgroups(
    pass: *const ComputePass,
    x: u32,
    y: u32,
    z: u32,
) {
    unsafe {
        record("wgpuComputePassEncoderDispatchWorkgroups", pass, |pass| {
            pass.dispatch_workgroups(x, y, z);
            Ok(())
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuComputePassEncoderWriteTimestamp(
    pass: *const ComputePass,
    queries: *const QuerySet,
    index: u32,
) {
    unsafe {
        record("wgpuComputePassEncoderWriteTimestamp", pass, |pass| {
            pass.write_timestamp(&borrow(queries, "query set")?.queries, index);
            Ok(())
        })
    }
}
