//! What is made once: shader modules, layouts, pipelines, bind groups, query sets.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::device::{create, Device};
use crate::object::{borrow, give, label, release, Errors, Object};
use crate::types::*;

/// Declares an object of a device around a value of the crate, with its release function.
macro_rules! object {
    ($name:ident, $field:ident, $release:ident) => {
        pub struct $name {
            pub $field: wgpu::$name,
            errors: Arc<Errors>,
        }

        impl Object for $name {
            fn errors(&self) -> Option<&Arc<Errors>> {
                Some(&self.errors)
            }
        }

        #[no_mangle]
        pub unsafe extern "C" fn $release(handle: *const $name) {
            unsafe { release(stringify!($release), handle) }
        }
    };
}

object!(ShaderModule, module, wgpuShaderModuleRelease);
object!(BindGroupLayout, layout, wgpuBindGroupLayoutRelease);
object!(BindGroup, group, wgpuBindGroupRelease);
object!(PipelineLayout, layout, wgpuPipelineLayoutRelease);
object!(ComputePipeline, pipeline, wgpuComputePipelineRelease);
object!(QuerySet, queries, wgpuQuerySetRelease);

unsafe fn make_module(
    device: &Device,
    descriptor: *const LabelDescriptor,
    checks: wgpu::ShaderRuntimeChecks,
) -> Result<*const ShaderModule, String> {
    let descriptor = unsafe { borrow(descriptor, "descriptor")? };
    let name = unsafe { descriptor.label.text() };
    let source = unsafe { find::<ShaderSourceWgsl>(descriptor.next, SHADER_SOURCE_WGSL) };
    let code = unsafe { source.ok_or("only WGSL is supported")?.code.text() };
    let descriptor = wgpu::ShaderModuleDescriptor {
        label: label(&name),
        source: wgpu::ShaderSource::Wgsl(code),
    };
    // SAFETY: the program answers for the checks that it leaves out.
    let module = unsafe {
        device
            .device
            .create_shader_module_trusted(descriptor, checks)
    };
    Ok(give(ShaderModule {
        module,
        errors: device.errors.clone(),
    }))
}

#[no_mangle]
pub unsafe extern "C" fn wgpuDeviceCreateShaderModule(
    device: *const Device,
    descriptor: *const LabelDescriptor,
) -> *const ShaderModule {
    unsafe {
        create("wgpuDeviceCreateShaderModule", device, |device| {
            make_module(device, descriptor, wgpu::ShaderRuntimeChecks::checked())
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuDeviceCreateShaderModuleTrusted(
    device: *const Device,
    descriptor: *const LabelDescriptor,
    checks: Flags,
) -> *const ShaderModule {
    unsafe {
        create("wgpuDeviceCreateShaderModuleTrusted", device, |device| {
            let mut wanted = wgpu::ShaderRuntimeChecks::unchecked();
            wanted.bounds_checks = checks & CHECK_BOUNDS != 0;
            wanted.force_loop_bounding = checks & CHECK_LOOPS != 0;
            make_module(device, descriptor, wanted)
        })
    }
}

fn binding_type(entry: &BindGroupLayoutEntry) -> Result<wgpu::BindingType, String> {
    let others = [
        entry.sampler.kind,
        entry.texture.kind,
        entry.storage_texture.kind,
    ];
    let ty = match entry.buffer.kind {
        BUFFER_UNIFORM => wgpu::BufferBindingType::Uniform,
        BUFFER_STORAGE => wgpu::BufferBindingType::Storage { read_only: false },
        BUFFER_READ_ONLY_STORAGE => wgpu::BufferBindingType::Storage { read_only: true },
        kind => return Err(format!("unknown buffer binding type {kind}")),
    };
    if others != [0, 0, 0] || entry.array_size > 1 {
        return Err("bindings are single buffers".into());
    }
    Ok(wgpu::BindingType::Buffer {
        ty,
        has_dynamic_offset: entry.buffer.has_dynamic_offset != 0,
        min_binding_size: NonZeroU64::new(entry.buffer.min_binding_size),
    })
}

#[no_mangle]
pub unsafe extern "C" fn wgpuDeviceCreateBindGroupLayout(
    device: *const Device,
    descriptor: *const BindGroupLayoutDescriptor,
) -> *const BindGroupLayout {
    unsafe {
        create("wgpuDeviceCreateBindGroupLayout", device, |device| {
            let descriptor = borrow(descriptor, "descriptor")?;
            let name = descriptor.label.text();
            let mut entries = Vec::with_capacity(descriptor.entry_count);
            for entry in slice(descriptor.entries, descriptor.entry_count) {
                if entry.visibility != STAGE_COMPUTE {
                    return Err("bindings are of compute shaders".into());
                }
                entries.push(wgpu::BindGroupLayoutEntry {
                    binding: entry.binding,
                    visibility: wgpu::ShaderStages::COMPUTE,
                    ty: binding_type(entry)?,
                    count: None,
                });
            }
            let layout = device
                .device
                .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                    label: label(&name),
                    entries: &entries,
                });
            Ok(give(BindGroupLayout {
                layout,
                errors: device.errors.clone(),
            }))
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuDeviceCreateBindGroup(
    device: *const Device,
    descriptor: *const BindGroupDescriptor,
) -> *const BindGroup {
    unsafe {
        create("wgpuDeviceCreateBindGroup", device, |device| {
            let descriptor = borrow(descriptor, "descriptor")?;
            let name = descriptor.label.text();
            let mut entries = Vec::with_capacity(descriptor.entry_count);
            for entry in slice(descriptor.entries, descriptor.entry_count) {
                let size = match entry.size {
                    UNDEFINED_U64 => None,
                    size => Some(NonZeroU64::new(size).ok_or("a binding of 0 bytes")?),
                };
                entries.push(wgpu::BindGroupEntry {
                    binding: entry.binding,
                    resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                        buffer: &borrow(entry.buffer, "buffer")?.buffer,
                        offset: entry.offset,
                        size,
                    }),
                });
            }
            let group = device.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: label(&name),
                layout: &borrow(descriptor.layout, "layout")?.layout,
                entries: &entries,
            });
            Ok(give(BindGroup {
                group,
                errors: device.errors.clone(),
            }))
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuDeviceCreatePipelineLayout(
    device: *const Device,
    descriptor: *const PipelineLayoutDescriptor,
) -> *const PipelineLayout {
    unsafe {
        create("wgpuDeviceCreatePipelineLayout", device, |device| {
            let descriptor = borrow(descriptor, "descriptor")?;
            let name = descriptor.label.text();
            let groups = slice(descriptor.layouts, descriptor.layout_count).iter();
            let groups: Vec<_> = groups
                .map(|group| group.as_ref().map(|group| &group.layout))
                .collect();
            let layout = device
                .device
                .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                    label: label(&name),
                    bind_group_layouts: &groups,
                    immediate_size: descriptor.immediate_size,
                });
            Ok(give(PipelineLayout {
                layout,
                errors: device.errors.clone(),
            }))
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuDeviceCreateComputePipeline(
    device: *const Device,
    descriptor: *const ComputePipelineDescriptor,
) -> *const ComputePipeline {
    unsafe {
        create("wgpuDeviceCreateComputePipeline", device, |device| {
            let descriptor = borrow(descriptor, "descriptor")?;
            let stage = &descriptor.compute;
            let (name, entry_point) = (descriptor.label.text(), stage.entry_point.text());
            let constants = slice(stage.constants, stage.constant_count).iter();
            let constants: Vec<_> = constants
                .map(|constant| (constant.key.text(), constant.value))
                .collect();
            let constants: Vec<_> = constants
                .iter()
                .map(|(key, value)| (key.as_ref(), *value))
                .collect();
            let pipeline =
                device
                    .device
                    .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                        label: label(&name),
                        layout: descriptor.layout.as_ref().map(|layout| &layout.layout),
                        module: &borrow(stage.module, "shader module")?.module,
                        entry_point: label(&entry_point),
                        compilation_options: wgpu::PipelineCompilationOptions {
                            constants: &constants,
                            // The kernels write before they read.
                            zero_initialize_workgroup_memory: false,
                        },
                        cache: None,
                    });
            Ok(give(ComputePipeline {
                pipeline,
                errors: device.errors.clone(),
            }))
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn wgpuDeviceCreateQuerySet(
    device: *const Device,
    descriptor: *const QuerySetDescriptor,
) -> *const QuerySet {
    unsafe {
        create("wgpuDeviceCreateQuerySet", device, |device| {
            let descriptor = borrow(descriptor, "descriptor")?;
            let name = descriptor.label.text();
            if descriptor.kind != QUERY_TIMESTAMP {
                return Err("only timestamps are supported".into());
            }
            let queries = device.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: label(&name),
                ty: wgpu::QueryType::Timestamp,
                count: descriptor.count,
            });
            Ok(give(QuerySet {
                queries,
                errors: device.errors.clone(),
            }))
        })
    }
}
