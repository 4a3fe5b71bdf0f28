//! The structs and numbers of webgpu.h and wgpu.h that the exported functions read and write, laid
//! out as there. Names are those of the headers without the prefix.

use std::borrow::Cow;
use std::ffi::{c_char, c_void, CStr};
use std::ptr::null;

use crate::adapter::{Adapter, Instance};
use crate::buffer::Buffer;
use crate::device::Device;
use crate::pipeline::{BindGroupLayout, PipelineLayout, QuerySet, ShaderModule};

pub type Bool = u32;
pub type Flags = u64;

/// The "undefined" value of sizes, counts, limits and indices.
pub const UNDEFINED_U32: u32 = u32::MAX;
pub const UNDEFINED_U64: u64 = u64::MAX;
pub const WHOLE_MAP: usize = usize::MAX;

pub const STATUS_SUCCESS: u32 = 1;
pub const STATUS_ERROR: u32 = 2;

pub const ERROR_VALIDATION: u32 = 2;
pub const ERROR_OUT_OF_MEMORY: u32 = 3;
pub const ERROR_INTERNAL: u32 = 4;

pub const LOST_UNKNOWN: u32 = 1;
pub const LOST_DESTROYED: u32 = 2;

/// Of callbacks.
pub const CALLBACK_SUCCESS: u32 = 1;
pub const CALLBACK_ERROR: u32 = 3;
pub const CALLBACK_ABORTED: u32 = 4;

pub const SHADER_SOURCE_WGSL: u32 = 0x0000_0002;
pub const INSTANCE_EXTRAS: u32 = 0x0003_0004;

pub const BUFFER_UNIFORM: u32 = 2;
pub const BUFFER_STORAGE: u32 = 3;
pub const BUFFER_READ_ONLY_STORAGE: u32 = 4;

pub const MAP_READ: Flags = 1;
pub const STAGE_COMPUTE: Flags = 4;
pub const QUERY_TIMESTAMP: u32 = 2;

pub const CHECK_BOUNDS: Flags = 1;
pub const CHECK_LOOPS: Flags = 2;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct StringView {
    pub data: *const c_char,
    pub length: usize,
}

impl StringView {
    pub const EMPTY: StringView = StringView {
        data: null(),
        length: 0,
    };

    pub fn of(text: &str) -> StringView {
        StringView {
            data: text.as_ptr().cast(),
            length: text.len(),
        }
    }

    /// # Safety
    /// The view is one of valid memory that outlives the result.
    pub unsafe fn text<'a>(self) -> Cow<'a, str> {
        if self.data.is_null() {
            return Cow::Borrowed("");
        }
        if self.length == usize::MAX {
            return unsafe { CStr::from_ptr(self.data) }.to_string_lossy();
        }
        String::from_utf8_lossy(unsafe {
            std::slice::from_raw_parts(self.data.cast(), self.length)
        })
    }
}

#[repr(C)]
pub struct Chained {
    pub next: *const Chained,
    pub kind: u32,
}

/// The entry of the chain with this kind.
///
/// # Safety
/// The chain is valid, and entries of `kind` are of type T.
pub unsafe fn find<'a, T>(mut chain: *const Chained, kind: u32) -> Option<&'a T> {
    while let Some(entry) = unsafe { chain.as_ref() } {
        if entry.kind == kind {
            return unsafe { chain.cast::<T>().as_ref() };
        }
        chain = entry.next;
    }
    None
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

/// A callback with what it is given; `F` is its function type.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CallbackInfo<F> {
    pub next: *const Chained,
    pub mode: u32,
    pub callback: Option<F>,
    pub user1: *mut c_void,
    pub user2: *mut c_void,
}

// SAFETY: the program promises that its callbacks may be called from any thread (spontaneously).
unsafe impl<F> Send for CallbackInfo<F> {}
unsafe impl<F> Sync for CallbackInfo<F> {}

pub type StatusCallback = unsafe extern "C" fn(u32, StringView, *mut c_void, *mut c_void);
pub type DeviceCallback =
    unsafe extern "C" fn(u32, *const Device, StringView, *mut c_void, *mut c_void);
/// Of lost devices and of errors.
pub type MessageCallback =
    unsafe extern "C" fn(*const *const Device, u32, StringView, *mut c_void, *mut c_void);

pub type StatusCallbackInfo = CallbackInfo<StatusCallback>;

impl StatusCallbackInfo {
    pub fn call(&self, status: u32, message: &str) {
        if let Some(callback) = self.callback {
            // SAFETY: the program keeps its callback valid until it was called.
            unsafe { callback(status, StringView::of(message), self.user1, self.user2) };
        }
    }
}

pub type DeviceCallbackInfo = CallbackInfo<DeviceCallback>;
pub type LostCallbackInfo = CallbackInfo<MessageCallback>;

/// Without a mode: errors are reported inside the failing call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ErrorCallbackInfo {
    pub next: *const Chained,
    pub callback: Option<MessageCallback>,
    pub user1: *mut c_void,
    pub user2: *mut c_void,
}

// SAFETY: as for CallbackInfo.
unsafe impl Send for ErrorCallbackInfo {}

#[repr(C)]
pub struct Future {
    pub id: u64,
}

#[repr(C)]
pub struct InstanceDescriptor {
    pub next: *const Chained,
    pub feature_count: usize,
    pub features: *const u32,
    pub limits: *const c_void,
}

/// The beginning of wgpu.h's struct; the rest is not read.
#[repr(C)]
pub struct InstanceExtras {
    pub chain: Chained,
    pub backends: Flags,
}

#[repr(C)]
pub struct EnumerateOptions {
    pub next: *const Chained,
    pub backends: Flags,
}

#[repr(C)]
pub struct AdapterInfo {
    pub next: *const Chained,
    pub vendor: StringView,
    pub architecture: StringView,
    pub device: StringView,
    pub description: StringView,
    pub backend: u32,
    pub kind: u32,
    pub vendor_id: u32,
    pub device_id: u32,
    pub subgroup_min_size: u32,
    pub subgroup_max_size: u32,
}

#[repr(C)]
pub struct SupportedFeatures {
    pub count: usize,
    pub features: *const u32,
}

#[repr(C)]
pub struct Limits {
    pub next: *const Chained,
    pub max_texture_dimension_1d: u32,
    pub max_texture_dimension_2d: u32,
    pub max_texture_dimension_3d: u32,
    pub max_texture_array_layers: u32,
    pub max_bind_groups: u32,
    pub max_bind_groups_plus_vertex_buffers: u32,
    pub max_bindings_per_bind_group: u32,
    pub max_dynamic_uniform_buffers_per_pipeline_layout: u32,
    pub max_dynamic_storage_buffers_per_pipeline_layout: u32,
    pub max_sampled_textures_per_shader_stage: u32,
    pub max_samplers_per_shader_stage: u32,
    pub max_storage_buffers_per_shader_stage: u32,
    pub max_storage_textures_per_shader_stage: u32,
    pub max_uniform_buffers_per_shader_stage: u32,
    pub max_uniform_buffer_binding_size: u64,
    pub max_storage_buffer_binding_size: u64,
    pub min_uniform_buffer_offset_alignment: u32,
    pub min_storage_buffer_offset_alignment: u32,
    pub max_vertex_buffers: u32,
    pub max_buffer_size: u64,
    pub max_vertex_attributes: u32,
    pub max_vertex_buffer_array_stride: u32,
    pub max_inter_stage_shader_variables: u32,
    pub max_color_attachments: u32,
    pub max_color_attachment_bytes_per_sample: u32,
    pub max_compute_workgroup_storage_size: u32,
    pub max_compute_invocations_per_workgroup: u32,
    pub max_compute_workgroup_size_x: u32,
    pub max_compute_workgroup_size_y: u32,
    pub max_compute_workgroup_size_z: u32,
    pub max_compute_workgroups_per_dimension: u32,
    pub max_immediate_size: u32,
}

/// Of queues, encoders, command buffers and shader modules.
#[repr(C)]
pub struct LabelDescriptor {
    pub next: *const Chained,
    pub label: StringView,
}

#[repr(C)]
pub struct DeviceDescriptor {
    pub next: *const Chained,
    pub label: StringView,
    pub feature_count: usize,
    pub features: *const u32,
    pub limits: *const Limits,
    pub queue: LabelDescriptor,
    pub lost: LostCallbackInfo,
    pub error: ErrorCallbackInfo,
}

#[repr(C)]
pub struct BufferDescriptor {
    pub next: *const Chained,
    pub label: StringView,
    pub usage: Flags,
    pub size: u64,
    pub mapped_at_creation: Bool,
}

#[repr(C)]
pub struct ShaderSourceWgsl {
    pub chain: Chained,
    pub code: StringView,
}

#[repr(C)]
pub struct BindGroupLayoutEntry {
    pub next: *const Chained,
    pub binding: u32,
    pub visibility: Flags,
    pub array_size: u32,
    pub buffer: BufferBindingLayout,
    pub sampler: SamplerBindingLayout,
    pub texture: TextureBindingLayout,
    pub storage_texture: TextureBindingLayout,
}

#[repr(C)]
pub struct BufferBindingLayout {
    pub next: *const Chained,
    pub kind: u32,
    pub has_dynamic_offset: Bool,
    pub min_binding_size: u64,
}

#[repr(C)]
pub struct SamplerBindingLayout {
    pub next: *const Chained,
    pub kind: u32,
}

/// Of textures and storage textures: their first number tells whether they are used.
#[repr(C)]
pub struct TextureBindingLayout {
    pub next: *const Chained,
    pub kind: u32,
    pub unused: [u32; 2],
}

#[repr(C)]
pub struct BindGroupLayoutDescriptor {
    pub next: *const Chained,
    pub label: StringView,
    pub entry_count: usize,
    pub entries: *const BindGroupLayoutEntry,
}

#[repr(C)]
pub struct BindGroupEntry {
    pub next: *const Chained,
    pub binding: u32,
    pub buffer: *const Buffer,
    pub offset: u64,
    pub size: u64,
    pub sampler: *const c_void,
    pub texture_view: *const c_void,
}

#[repr(C)]
pub struct BindGroupDescriptor {
    pub next: *const Chained,
    pub label: StringView,
    pub layout: *const BindGroupLayout,
    pub entry_count: usize,
    pub entries: *const BindGroupEntry,
}

#[repr(C)]
pub struct PipelineLayoutDescriptor {
    pub next: *const Chained,
    pub label: StringView,
    pub layout_count: usize,
    pub layouts: *const *const BindGroupLayout,
    pub immediate_size: u32,
}

#[repr(C)]
pub struct ConstantEntry {
    pub next: *const Chained,
    pub key: StringView,
    pub value: f64,
}

#[repr(C)]
pub struct ComputeState {
    pub next: *const Chained,
    pub module: *const ShaderModule,
    pub entry_point: StringView,
    pub constant_count: usize,
    pub constants: *const ConstantEntry,
}

#[repr(C)]
pub struct ComputePipelineDescriptor {
    pub next: *const Chained,
    pub label: StringView,
    pub layout: *const PipelineLayout,
    pub compute: ComputeState,
}

#[repr(C)]
pub struct QuerySetDescriptor {
    pub next: *const Chained,
    pub label: StringView,
    pub kind: u32,
    pub count: u32,
}

#[repr(C)]
pub struct PassTimestampWrites {
    pub next: *const Chained,
    pub query_set: *const QuerySet,
    pub begin: u32,
    pub end: u32,
}

#[repr(C)]
pub struct ComputePassDescriptor {
    pub next: *const Chained,
    pub label: StringView,
    pub timestamps: *const PassTimestampWrites,
}

/// Of wisp_webgpu.h.
#[repr(C)]
pub struct MatrixConfig {
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub input: u32,
    pub accumulator: u32,
}

/// Callback functions name these types only behind pointers.
pub type InstanceHandle = *const Instance;
pub type AdapterHandle = *const Adapter;
