//! The functions that are exported but not implemented. Each of these functions returns `CUDA_ERROR_NOT_SUPPORTED`. The
//! first call of each function writes a message.
//!
//! The rows have the form of the rows in `table.rs`, but without parameters.

use crate::call::enter;
use crate::messages::say_once;
use crate::rows::{FunctionRow, address};
use crate::status::{CallResult, CudaError};

/// Reports that a function is not supported.
fn report(symbol: &str) -> CallResult {
    say_once(&format!("{symbol} is not supported"));
    Err(CudaError::NOT_SUPPORTED)
}

macro_rules! missing {
    ($($name:ident $since:literal $symbol:ident $(/ $per_since:literal $per_thread:ident)?;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $symbol() -> u32 {
                enter(stringify!($symbol), false, || report(stringify!($symbol)))
            }
            $(
                #[unsafe(no_mangle)]
                unsafe extern "C" fn $per_thread() -> u32 {
                    enter(stringify!($per_thread), true, || report(stringify!($per_thread)))
                }
            )?
        )*

        /// The rows of all functions.
        pub(crate) static ROWS: &[&[FunctionRow]] = &[$(&[
            FunctionRow {
                name: stringify!($name),
                since: $since,
                per_thread: false,
                symbol: stringify!($symbol),
                address: address!($symbol),
            },
            $(FunctionRow {
                name: stringify!($name),
                since: $per_since,
                per_thread: true,
                symbol: stringify!($per_thread),
                address: address!($per_thread),
            },)?
        ]),*];
    };
}

missing! {
    cuArray3DCreate 2000 cuArray3DCreate;
    cuArray3DGetDescriptor 2000 cuArray3DGetDescriptor;
    cuArrayCreate 2000 cuArrayCreate;
    cuArrayGetDescriptor 2000 cuArrayGetDescriptor;
    cuArrayGetMemoryRequirements 11060 cuArrayGetMemoryRequirements;
    cuArrayGetPlane 11020 cuArrayGetPlane;
    cuArrayGetSparseProperties 11010 cuArrayGetSparseProperties;
    cuCheckpointOperationComplete 13040 cuCheckpointOperationComplete;
    cuCheckpointProcessCheckpoint 12080 cuCheckpointProcessCheckpoint;
    cuCheckpointProcessGetRestoreThreadId 12080 cuCheckpointProcessGetRestoreThreadId;
    cuCheckpointProcessGetState 12080 cuCheckpointProcessGetState;
    cuCheckpointProcessLock 12080 cuCheckpointProcessLock;
    cuCheckpointProcessRestore 12080 cuCheckpointProcessRestore;
    cuCheckpointProcessUnlock 12080 cuCheckpointProcessUnlock;
    cuCoredumpDeregisterCompleteCallback 13020 cuCoredumpDeregisterCompleteCallback;
    cuCoredumpDeregisterStartCallback 13020 cuCoredumpDeregisterStartCallback;
    cuCoredumpGetAttribute 12010 cuCoredumpGetAttribute;
    cuCoredumpGetAttributeGlobal 12010 cuCoredumpGetAttributeGlobal;
    cuCoredumpRegisterCompleteCallback 13020 cuCoredumpRegisterCompleteCallback;
    cuCoredumpRegisterStartCallback 13020 cuCoredumpRegisterStartCallback;
    cuCoredumpSetAttribute 12010 cuCoredumpSetAttribute;
    cuCoredumpSetAttributeGlobal 12010 cuCoredumpSetAttributeGlobal;
    cuCtxFromGreenCtx 12040 cuCtxFromGreenCtx;
    cuCtxGetDevResource 12040 cuCtxGetDevResource;
    cuCtxGetExecAffinity 11040 cuCtxGetExecAffinity;
    cuCtxRecordEvent 12050 cuCtxRecordEvent;
    cuCtxWaitEvent 12050 cuCtxWaitEvent;
    cuDestroyExternalMemory 10000 cuDestroyExternalMemory;
    cuDestroyExternalSemaphore 10000 cuDestroyExternalSemaphore;
    cuDevResourceGenerateDesc 12040 cuDevResourceGenerateDesc;
    cuDevSmResourceSplit 13010 cuDevSmResourceSplit;
    cuDevSmResourceSplitByCount 12040 cuDevSmResourceSplitByCount;
    cuDeviceGetCliqueCount 13040 cuDeviceGetCliqueCount;
    cuDeviceGetCliqueInfo 13040 cuDeviceGetCliqueInfo;
    cuDeviceGetDefaultMemPool 11020 cuDeviceGetDefaultMemPool;
    cuDeviceGetDevResource 12040 cuDeviceGetDevResource;
    cuDeviceGetFabricClusterUuid 13040 cuDeviceGetFabricClusterUuid;
    cuDeviceGetGraphMemAttribute 11040 cuDeviceGetGraphMemAttribute;
    cuDeviceGetHostAtomicCapabilities 13000 cuDeviceGetHostAtomicCapabilities;
    cuDeviceGetMemPool 11020 cuDeviceGetMemPool;
    cuDeviceGetNvSciSyncAttributes 10020 cuDeviceGetNvSciSyncAttributes;
    cuDeviceGetP2PAtomicCapabilities 13000 cuDeviceGetP2PAtomicCapabilities;
    cuDeviceGraphMemTrim 11040 cuDeviceGraphMemTrim;
    cuDeviceRegisterAsyncNotification 12040 cuDeviceRegisterAsyncNotification;
    cuDeviceSetGraphMemAttribute 11040 cuDeviceSetGraphMemAttribute;
    cuDeviceSetMemPool 11020 cuDeviceSetMemPool;
    cuDeviceUnregisterAsyncNotification 12040 cuDeviceUnregisterAsyncNotification;
    cuEGLStreamConsumerAcquireFrame 2000 cuEGLStreamConsumerAcquireFrame;
    cuEGLStreamConsumerConnect 2000 cuEGLStreamConsumerConnect;
    cuEGLStreamConsumerConnectWithFlags 2000 cuEGLStreamConsumerConnectWithFlags;
    cuEGLStreamConsumerDisconnect 2000 cuEGLStreamConsumerDisconnect;
    cuEGLStreamConsumerReleaseFrame 2000 cuEGLStreamConsumerReleaseFrame;
    cuEGLStreamProducerConnect 2000 cuEGLStreamProducerConnect;
    cuEGLStreamProducerDisconnect 2000 cuEGLStreamProducerDisconnect;
    cuEGLStreamProducerPresentFrame 2000 cuEGLStreamProducerPresentFrame;
    cuEGLStreamProducerReturnFrame 2000 cuEGLStreamProducerReturnFrame;
    cuEventCreateFromEGLSync 2000 cuEventCreateFromEGLSync;
    cuExternalMemoryGetMappedBuffer 10000 cuExternalMemoryGetMappedBuffer;
    cuExternalMemoryGetMappedMipmappedArray 10000 cuExternalMemoryGetMappedMipmappedArray;
    cuFabricCpyBatchAsync 13050 cuFabricCpyBatchAsync / 13050 cuFabricCpyBatchAsync_ptsz;
    cuFlushGPUDirectRDMAWrites 11030 cuFlushGPUDirectRDMAWrites;
    cuGLCtxCreate 2000 cuGLCtxCreate;
    cuGLGetDevices 2000 cuGLGetDevices;
    cuGLInit 2000 cuGLInit;
    cuGLMapBufferObject 2000 cuGLMapBufferObject;
    cuGLMapBufferObjectAsync 2000 cuGLMapBufferObjectAsync;
    cuGLRegisterBufferObject 2000 cuGLRegisterBufferObject;
    cuGLSetBufferObjectMapFlags 2000 cuGLSetBufferObjectMapFlags;
    cuGLUnmapBufferObject 2000 cuGLUnmapBufferObject;
    cuGLUnmapBufferObjectAsync 2000 cuGLUnmapBufferObjectAsync;
    cuGLUnregisterBufferObject 2000 cuGLUnregisterBufferObject;
    cuGraphAddBatchMemOpNode 11070 cuGraphAddBatchMemOpNode;
    cuGraphAddChildGraphNode 10000 cuGraphAddChildGraphNode;
    cuGraphAddDependencies 10000 cuGraphAddDependencies;
    cuGraphAddDependencies 12030 cuGraphAddDependencies_v2;
    cuGraphAddEmptyNode 10000 cuGraphAddEmptyNode;
    cuGraphAddEventRecordNode 11010 cuGraphAddEventRecordNode;
    cuGraphAddEventWaitNode 11010 cuGraphAddEventWaitNode;
    cuGraphAddExternalSemaphoresSignalNode 11020 cuGraphAddExternalSemaphoresSignalNode;
    cuGraphAddExternalSemaphoresWaitNode 11020 cuGraphAddExternalSemaphoresWaitNode;
    cuGraphAddHostNode 10000 cuGraphAddHostNode;
    cuGraphAddKernelNode 10000 cuGraphAddKernelNode;
    cuGraphAddKernelNode 12000 cuGraphAddKernelNode_v2;
    cuGraphAddMemAllocNode 11040 cuGraphAddMemAllocNode;
    cuGraphAddMemFreeNode 11040 cuGraphAddMemFreeNode;
    cuGraphAddMemcpyNode 10000 cuGraphAddMemcpyNode;
    cuGraphAddMemsetNode 10000 cuGraphAddMemsetNode;
    cuGraphAddNode 12020 cuGraphAddNode;
    cuGraphAddNode 12030 cuGraphAddNode_v2;
    cuGraphAddNode 13040 cuGraphAddNode_v3;
    cuGraphBatchMemOpNodeGetParams 11070 cuGraphBatchMemOpNodeGetParams;
    cuGraphBatchMemOpNodeSetParams 11070 cuGraphBatchMemOpNodeSetParams;
    cuGraphChildGraphNodeGetGraph 10000 cuGraphChildGraphNodeGetGraph;
    cuGraphClone 10000 cuGraphClone;
    cuGraphConditionalHandleCreate 12030 cuGraphConditionalHandleCreate;
    cuGraphCreate 10000 cuGraphCreate;
    cuGraphDebugDotPrint 11030 cuGraphDebugDotPrint;
    cuGraphDestroy 10000 cuGraphDestroy;
    cuGraphDestroyNode 10000 cuGraphDestroyNode;
    cuGraphEventRecordNodeGetEvent 11010 cuGraphEventRecordNodeGetEvent;
    cuGraphEventRecordNodeSetEvent 11010 cuGraphEventRecordNodeSetEvent;
    cuGraphEventWaitNodeGetEvent 11010 cuGraphEventWaitNodeGetEvent;
    cuGraphEventWaitNodeSetEvent 11010 cuGraphEventWaitNodeSetEvent;
    cuGraphExecBatchMemOpNodeSetParams 11070 cuGraphExecBatchMemOpNodeSetParams;
    cuGraphExecChildGraphNodeSetParams 11010 cuGraphExecChildGraphNodeSetParams;
    cuGraphExecDestroy 10000 cuGraphExecDestroy;
    cuGraphExecEventRecordNodeSetEvent 11010 cuGraphExecEventRecordNodeSetEvent;
    cuGraphExecEventWaitNodeSetEvent 11010 cuGraphExecEventWaitNodeSetEvent;
    cuGraphExecExternalSemaphoresSignalNodeSetParams 11020 cuGraphExecExternalSemaphoresSignalNodeSetParams;
    cuGraphExecExternalSemaphoresWaitNodeSetParams 11020 cuGraphExecExternalSemaphoresWaitNodeSetParams;
    cuGraphExecGetFlags 12000 cuGraphExecGetFlags;
    cuGraphExecGetId 13010 cuGraphExecGetId;
    cuGraphExecHostNodeSetParams 10020 cuGraphExecHostNodeSetParams;
    cuGraphExecKernelNodeSetParams 10010 cuGraphExecKernelNodeSetParams;
    cuGraphExecKernelNodeSetParams 12000 cuGraphExecKernelNodeSetParams_v2;
    cuGraphExecMemcpyNodeSetParams 10020 cuGraphExecMemcpyNodeSetParams;
    cuGraphExecMemsetNodeSetParams 10020 cuGraphExecMemsetNodeSetParams;
    cuGraphExecNodeSetParams 12020 cuGraphExecNodeSetParams;
    cuGraphExecUpdate 10020 cuGraphExecUpdate;
    cuGraphExecUpdate 12000 cuGraphExecUpdate_v2;
    cuGraphExternalSemaphoresSignalNodeGetParams 11020 cuGraphExternalSemaphoresSignalNodeGetParams;
    cuGraphExternalSemaphoresSignalNodeSetParams 11020 cuGraphExternalSemaphoresSignalNodeSetParams;
    cuGraphExternalSemaphoresWaitNodeGetParams 11020 cuGraphExternalSemaphoresWaitNodeGetParams;
    cuGraphExternalSemaphoresWaitNodeSetParams 11020 cuGraphExternalSemaphoresWaitNodeSetParams;
    cuGraphGetEdges 10000 cuGraphGetEdges;
    cuGraphGetEdges 12030 cuGraphGetEdges_v2;
    cuGraphGetId 13010 cuGraphGetId;
    cuGraphGetNodes 10000 cuGraphGetNodes;
    cuGraphGetRootNodes 10000 cuGraphGetRootNodes;
    cuGraphHostNodeGetParams 10000 cuGraphHostNodeGetParams;
    cuGraphHostNodeSetParams 10000 cuGraphHostNodeSetParams;
    cuGraphInstantiate 10000 cuGraphInstantiate;
    cuGraphInstantiateWithFlags 11040 cuGraphInstantiateWithFlags;
    cuGraphInstantiateWithParams 12000 cuGraphInstantiateWithParams / 12000 cuGraphInstantiateWithParams_ptsz;
    cuGraphInstantiate 11000 cuGraphInstantiate_v2;
    cuGraphKernelNodeCopyAttributes 11000 cuGraphKernelNodeCopyAttributes;
    cuGraphKernelNodeGetAttribute 11000 cuGraphKernelNodeGetAttribute;
    cuGraphKernelNodeGetParams 10000 cuGraphKernelNodeGetParams;
    cuGraphKernelNodeGetParams 12000 cuGraphKernelNodeGetParams_v2;
    cuGraphKernelNodeSetAttribute 11000 cuGraphKernelNodeSetAttribute;
    cuGraphKernelNodeSetParams 10000 cuGraphKernelNodeSetParams;
    cuGraphKernelNodeSetParams 12000 cuGraphKernelNodeSetParams_v2;
    cuGraphLaunch 10000 cuGraphLaunch / 10000 cuGraphLaunch_ptsz;
    cuGraphMemAllocNodeGetParams 11040 cuGraphMemAllocNodeGetParams;
    cuGraphMemFreeNodeGetParams 11040 cuGraphMemFreeNodeGetParams;
    cuGraphMemcpyNodeGetParams 10000 cuGraphMemcpyNodeGetParams;
    cuGraphMemcpyNodeSetParams 10000 cuGraphMemcpyNodeSetParams;
    cuGraphMemsetNodeGetParams 10000 cuGraphMemsetNodeGetParams;
    cuGraphMemsetNodeSetParams 10000 cuGraphMemsetNodeSetParams;
    cuGraphNodeFindInClone 10000 cuGraphNodeFindInClone;
    cuGraphNodeGetContainingGraph 13010 cuGraphNodeGetContainingGraph;
    cuGraphNodeGetDependencies 10000 cuGraphNodeGetDependencies;
    cuGraphNodeGetDependencies 12030 cuGraphNodeGetDependencies_v2;
    cuGraphNodeGetDependentNodes 10000 cuGraphNodeGetDependentNodes;
    cuGraphNodeGetDependentNodes 12030 cuGraphNodeGetDependentNodes_v2;
    cuGraphNodeGetEnabled 11060 cuGraphNodeGetEnabled;
    cuGraphNodeGetLocalId 13010 cuGraphNodeGetLocalId;
    cuGraphNodeGetParams 13020 cuGraphNodeGetParams;
    cuGraphNodeGetToolsId 13010 cuGraphNodeGetToolsId;
    cuGraphNodeGetType 10000 cuGraphNodeGetType;
    cuGraphNodeSetEnabled 11060 cuGraphNodeSetEnabled;
    cuGraphNodeSetParams 12020 cuGraphNodeSetParams;
    cuGraphNodeSetParams 13040 cuGraphNodeSetParams_v2;
    cuGraphReleaseUserObject 11030 cuGraphReleaseUserObject;
    cuGraphRemoveDependencies 10000 cuGraphRemoveDependencies;
    cuGraphRemoveDependencies 12030 cuGraphRemoveDependencies_v2;
    cuGraphRetainUserObject 11030 cuGraphRetainUserObject;
    cuGraphUpload 11010 cuGraphUpload / 11010 cuGraphUpload_ptsz;
    cuGraphicsEGLRegisterImage 2000 cuGraphicsEGLRegisterImage;
    cuGraphicsGLRegisterBuffer 2000 cuGraphicsGLRegisterBuffer;
    cuGraphicsGLRegisterImage 2000 cuGraphicsGLRegisterImage;
    cuGraphicsMapResources 3000 cuGraphicsMapResources / 7000 cuGraphicsMapResources_ptsz;
    cuGraphicsResourceGetMappedEglFrame 4000 cuGraphicsResourceGetMappedEglFrame;
    cuGraphicsResourceGetMappedMipmappedArray 5000 cuGraphicsResourceGetMappedMipmappedArray;
    cuGraphicsResourceGetMappedPointer 3000 cuGraphicsResourceGetMappedPointer;
    cuGraphicsResourceGetMappedPointer 3020 cuGraphicsResourceGetMappedPointer_v2;
    cuGraphicsResourceSetMapFlags 3000 cuGraphicsResourceSetMapFlags;
    cuGraphicsResourceSetMapFlags 6050 cuGraphicsResourceSetMapFlags_v2;
    cuGraphicsSubResourceGetMappedArray 3000 cuGraphicsSubResourceGetMappedArray;
    cuGraphicsUnmapResources 3000 cuGraphicsUnmapResources / 7000 cuGraphicsUnmapResources_ptsz;
    cuGraphicsUnregisterResource 3000 cuGraphicsUnregisterResource;
    cuGraphicsVDPAURegisterOutputSurface 4000 cuGraphicsVDPAURegisterOutputSurface;
    cuGraphicsVDPAURegisterVideoSurface 4000 cuGraphicsVDPAURegisterVideoSurface;
    cuGreenCtxCreate 12040 cuGreenCtxCreate;
    cuGreenCtxDestroy 12040 cuGreenCtxDestroy;
    cuGreenCtxGetDevResource 12040 cuGreenCtxGetDevResource;
    cuGreenCtxGetId 12090 cuGreenCtxGetId;
    cuGreenCtxRecordEvent 12040 cuGreenCtxRecordEvent;
    cuGreenCtxStreamCreate 12050 cuGreenCtxStreamCreate;
    cuGreenCtxWaitEvent 12040 cuGreenCtxWaitEvent;
    cuImportExternalMemory 10000 cuImportExternalMemory;
    cuImportExternalSemaphore 10000 cuImportExternalSemaphore;
    cuIpcCloseMemHandle 4010 cuIpcCloseMemHandle;
    cuIpcGetEventHandle 4010 cuIpcGetEventHandle;
    cuIpcGetMemHandle 4010 cuIpcGetMemHandle;
    cuIpcOpenEventHandle 4010 cuIpcOpenEventHandle;
    cuIpcOpenMemHandle 4010 cuIpcOpenMemHandle;
    cuIpcOpenMemHandle 11000 cuIpcOpenMemHandle_v2;
    cuLaunchCooperativeKernelMultiDevice 9000 cuLaunchCooperativeKernelMultiDevice;
    cuLinkAddData 5050 cuLinkAddData;
    cuLinkAddData 6050 cuLinkAddData_v2;
    cuLinkAddFile 5050 cuLinkAddFile;
    cuLinkAddFile 6050 cuLinkAddFile_v2;
    cuLinkComplete 5050 cuLinkComplete;
    cuLinkCreate 5050 cuLinkCreate;
    cuLinkCreate 6050 cuLinkCreate_v2;
    cuLinkDestroy 5050 cuLinkDestroy;
    cuLogicalEndpointAddDevice 13030 cuLogicalEndpointAddDevice;
    cuLogicalEndpointBindAddr 13030 cuLogicalEndpointBindAddr;
    cuLogicalEndpointBindMem 13030 cuLogicalEndpointBindMem;
    cuLogicalEndpointCreate 13030 cuLogicalEndpointCreate;
    cuLogicalEndpointDestroy 13030 cuLogicalEndpointDestroy;
    cuLogicalEndpointExport 13030 cuLogicalEndpointExport;
    cuLogicalEndpointGetLimits 13030 cuLogicalEndpointGetLimits;
    cuLogicalEndpointIdRelease 13030 cuLogicalEndpointIdRelease;
    cuLogicalEndpointIdReserve 13030 cuLogicalEndpointIdReserve;
    cuLogicalEndpointImport 13030 cuLogicalEndpointImport;
    cuLogicalEndpointQuery 13030 cuLogicalEndpointQuery;
    cuLogicalEndpointUnbind 13030 cuLogicalEndpointUnbind;
    cuLogsCurrent 12090 cuLogsCurrent;
    cuLogsDumpToFile 12090 cuLogsDumpToFile;
    cuLogsDumpToMemory 12090 cuLogsDumpToMemory;
    cuLogsRegisterCallback 12090 cuLogsRegisterCallback;
    cuLogsUnregisterCallback 12090 cuLogsUnregisterCallback;
    cuMemAddressFree 10020 cuMemAddressFree;
    cuMemAddressReserve 10020 cuMemAddressReserve;
    cuMemAdvise 8000 cuMemAdvise;
    cuMemAdvise 12020 cuMemAdvise_v2;
    cuMemAllocFromPoolAsync 11020 cuMemAllocFromPoolAsync / 11020 cuMemAllocFromPoolAsync_ptsz;
    cuMemBatchDecompressAsync 12060 cuMemBatchDecompressAsync / 12060 cuMemBatchDecompressAsync_ptsz;
    cuMemCreate 10020 cuMemCreate;
    cuMemDiscardAndPrefetchBatchAsync 13000 cuMemDiscardAndPrefetchBatchAsync / 13000 cuMemDiscardAndPrefetchBatchAsync_ptsz;
    cuMemDiscardBatchAsync 13000 cuMemDiscardBatchAsync / 13000 cuMemDiscardBatchAsync_ptsz;
    cuMemExportToShareableHandle 10020 cuMemExportToShareableHandle;
    cuMemGetAccess 10020 cuMemGetAccess;
    cuMemGetAllocationGranularity 10020 cuMemGetAllocationGranularity;
    cuMemGetAllocationPropertiesFromHandle 10020 cuMemGetAllocationPropertiesFromHandle;
    cuMemGetDefaultMemPool 13000 cuMemGetDefaultMemPool;
    cuMemGetHandleForAddressRange 11070 cuMemGetHandleForAddressRange;
    cuMemGetLocationInfo 13040 cuMemGetLocationInfo;
    cuMemGetMemPool 13000 cuMemGetMemPool;
    cuMemImportFromShareableHandle 10020 cuMemImportFromShareableHandle;
    cuMemMap 10020 cuMemMap;
    cuMemMapArrayAsync 11010 cuMemMapArrayAsync / 11010 cuMemMapArrayAsync_ptsz;
    cuMemPoolCreate 11020 cuMemPoolCreate;
    cuMemPoolDestroy 11020 cuMemPoolDestroy;
    cuMemPoolExportPointer 11020 cuMemPoolExportPointer;
    cuMemPoolExportToShareableHandle 11020 cuMemPoolExportToShareableHandle;
    cuMemPoolGetAccess 11020 cuMemPoolGetAccess;
    cuMemPoolGetAttribute 11020 cuMemPoolGetAttribute;
    cuMemPoolImportFromShareableHandle 11020 cuMemPoolImportFromShareableHandle;
    cuMemPoolImportPointer 11020 cuMemPoolImportPointer;
    cuMemPoolSetAccess 11020 cuMemPoolSetAccess;
    cuMemPoolSetAttribute 11020 cuMemPoolSetAttribute;
    cuMemPoolTrimTo 11020 cuMemPoolTrimTo;
    cuMemPrefetchAsync 8000 cuMemPrefetchAsync / 8000 cuMemPrefetchAsync_ptsz;
    cuMemPrefetchAsync 12020 cuMemPrefetchAsync_v2 / 12020 cuMemPrefetchAsync_v2_ptsz;
    cuMemPrefetchBatchAsync 13000 cuMemPrefetchBatchAsync / 13000 cuMemPrefetchBatchAsync_ptsz;
    cuMemRangeGetAttribute 8000 cuMemRangeGetAttribute;
    cuMemRangeGetAttributes 8000 cuMemRangeGetAttributes;
    cuMemRelease 10020 cuMemRelease;
    cuMemRetainAllocationHandle 11000 cuMemRetainAllocationHandle;
    cuMemSetAccess 10020 cuMemSetAccess;
    cuMemSetMemPool 13000 cuMemSetMemPool;
    cuMemUnmap 10020 cuMemUnmap;
    cuMemcpy2D 2000 cuMemcpy2D;
    cuMemcpy2DAsync 2000 cuMemcpy2DAsync;
    cuMemcpy2DUnaligned 2000 cuMemcpy2DUnaligned;
    cuMemcpy3D 2000 cuMemcpy3D;
    cuMemcpy3DAsync 2000 cuMemcpy3DAsync;
    cuMemcpy3DBatchAsync 12080 cuMemcpy3DBatchAsync / 12080 cuMemcpy3DBatchAsync_ptsz;
    cuMemcpy3DBatchAsync 13000 cuMemcpy3DBatchAsync_v2 / 13000 cuMemcpy3DBatchAsync_v2_ptsz;
    cuMemcpy3DWithAttributesAsync 13020 cuMemcpy3DWithAttributesAsync / 13020 cuMemcpy3DWithAttributesAsync_ptsz;
    cuMemcpyAtoA 2000 cuMemcpyAtoA;
    cuMemcpyAtoD 2000 cuMemcpyAtoD;
    cuMemcpyAtoH 2000 cuMemcpyAtoH;
    cuMemcpyAtoHAsync 2000 cuMemcpyAtoHAsync;
    cuMemcpyBatchAsync 12080 cuMemcpyBatchAsync / 12080 cuMemcpyBatchAsync_ptsz;
    cuMemcpyBatchAsync 13000 cuMemcpyBatchAsync_v2 / 13000 cuMemcpyBatchAsync_v2_ptsz;
    cuMemcpyDtoA 2000 cuMemcpyDtoA;
    cuMemcpyHtoA 2000 cuMemcpyHtoA;
    cuMemcpyHtoAAsync 2000 cuMemcpyHtoAAsync;
    cuMemcpyWithAttributesAsync 13020 cuMemcpyWithAttributesAsync / 13020 cuMemcpyWithAttributesAsync_ptsz;
    cuMipmappedArrayCreate 5000 cuMipmappedArrayCreate;
    cuMipmappedArrayDestroy 5000 cuMipmappedArrayDestroy;
    cuMipmappedArrayGetLevel 5000 cuMipmappedArrayGetLevel;
    cuMipmappedArrayGetMemoryRequirements 11060 cuMipmappedArrayGetMemoryRequirements;
    cuMipmappedArrayGetSparseProperties 11010 cuMipmappedArrayGetSparseProperties;
    cuMulticastAddDevice 12010 cuMulticastAddDevice;
    cuMulticastBindAddr 12010 cuMulticastBindAddr;
    cuMulticastBindAddr 13010 cuMulticastBindAddr_v2;
    cuMulticastBindMem 12010 cuMulticastBindMem;
    cuMulticastBindMem 13010 cuMulticastBindMem_v2;
    cuMulticastCreate 12010 cuMulticastCreate;
    cuMulticastGetGranularity 12010 cuMulticastGetGranularity;
    cuMulticastUnbind 12010 cuMulticastUnbind;
    cuOccupancyMaxActiveClusters 11070 cuOccupancyMaxActiveClusters;
    cuOccupancyMaxPotentialClusterSize 11070 cuOccupancyMaxPotentialClusterSize;
    cuProfilerInitialize 4000 cuProfilerInitialize;
    cuSignalExternalSemaphoresAsync 10000 cuSignalExternalSemaphoresAsync / 10000 cuSignalExternalSemaphoresAsync_ptsz;
    cuStreamBatchMemOp 8000 cuStreamBatchMemOp / 8000 cuStreamBatchMemOp_ptsz;
    cuStreamBatchMemOp 11070 cuStreamBatchMemOp_v2 / 11070 cuStreamBatchMemOp_v2_ptsz;
    cuStreamBeginCapture 10000 cuStreamBeginCapture / 10000 cuStreamBeginCapture_ptsz;
    cuStreamBeginCaptureToCig 13010 cuStreamBeginCaptureToCig / 13010 cuStreamBeginCaptureToCig_ptsz;
    cuStreamBeginCaptureToGraph 12030 cuStreamBeginCaptureToGraph / 12030 cuStreamBeginCaptureToGraph_ptsz;
    cuStreamBeginCapture 10010 cuStreamBeginCapture_v2 / 10010 cuStreamBeginCapture_v2_ptsz;
    cuStreamBeginRecaptureToGraph 13030 cuStreamBeginRecaptureToGraph / 13030 cuStreamBeginRecaptureToGraph_ptsz;
    cuStreamCopyAttributes 11000 cuStreamCopyAttributes / 11000 cuStreamCopyAttributes_ptsz;
    cuStreamEndCapture 10000 cuStreamEndCapture / 10000 cuStreamEndCapture_ptsz;
    cuStreamEndCaptureToCig 13010 cuStreamEndCaptureToCig / 13010 cuStreamEndCaptureToCig_ptsz;
    cuStreamGetAttribute 11000 cuStreamGetAttribute / 11000 cuStreamGetAttribute_ptsz;
    cuStreamGetDevResource 13010 cuStreamGetDevResource / 13010 cuStreamGetDevResource_ptsz;
    cuStreamGetGreenCtx 12040 cuStreamGetGreenCtx;
    cuStreamSetAttribute 11000 cuStreamSetAttribute / 11000 cuStreamSetAttribute_ptsz;
    cuStreamUpdateCaptureDependencies 11030 cuStreamUpdateCaptureDependencies / 11030 cuStreamUpdateCaptureDependencies_ptsz;
    cuStreamUpdateCaptureDependencies 12030 cuStreamUpdateCaptureDependencies_v2 / 12030 cuStreamUpdateCaptureDependencies_v2_ptsz;
    cuStreamWaitValue32 8000 cuStreamWaitValue32 / 8000 cuStreamWaitValue32_ptsz;
    cuStreamWaitValue32 11070 cuStreamWaitValue32_v2 / 11070 cuStreamWaitValue32_v2_ptsz;
    cuStreamWaitValue64 9000 cuStreamWaitValue64 / 9000 cuStreamWaitValue64_ptsz;
    cuStreamWaitValue64 11070 cuStreamWaitValue64_v2 / 11070 cuStreamWaitValue64_v2_ptsz;
    cuSurfObjectCreate 5000 cuSurfObjectCreate;
    cuSurfObjectDestroy 5000 cuSurfObjectDestroy;
    cuSurfObjectGetResourceDesc 5000 cuSurfObjectGetResourceDesc;
    cuSurfRefGetArray 3000 cuSurfRefGetArray;
    cuSurfRefSetArray 3000 cuSurfRefSetArray;
    cuTensorMapEncodeIm2col 12000 cuTensorMapEncodeIm2col;
    cuTensorMapEncodeIm2colWide 12080 cuTensorMapEncodeIm2colWide;
    cuTensorMapEncodeTiled 12000 cuTensorMapEncodeTiled;
    cuTensorMapReplaceAddress 12000 cuTensorMapReplaceAddress;
    cuTensorMapSetAllocationClass 13050 cuTensorMapSetAllocationClass;
    cuTexObjectCreate 5000 cuTexObjectCreate;
    cuTexObjectDestroy 5000 cuTexObjectDestroy;
    cuTexObjectGetResourceDesc 5000 cuTexObjectGetResourceDesc;
    cuTexObjectGetResourceViewDesc 5000 cuTexObjectGetResourceViewDesc;
    cuTexObjectGetTextureDesc 5000 cuTexObjectGetTextureDesc;
    cuTexRefGetAddress 2000 cuTexRefGetAddress;
    cuTexRefGetBorderColor 8000 cuTexRefGetBorderColor;
    cuTexRefGetMipmapFilterMode 5000 cuTexRefGetMipmapFilterMode;
    cuTexRefGetMipmapLevelBias 5000 cuTexRefGetMipmapLevelBias;
    cuTexRefGetMipmapLevelClamp 5000 cuTexRefGetMipmapLevelClamp;
    cuTexRefGetMipmappedArray 5000 cuTexRefGetMipmappedArray;
    cuTexRefSetAddress 2000 cuTexRefSetAddress;
    cuTexRefSetAddress2D 2020 cuTexRefSetAddress2D;
    cuTexRefSetMipmapFilterMode 5000 cuTexRefSetMipmapFilterMode;
    cuTexRefSetMipmapLevelBias 5000 cuTexRefSetMipmapLevelBias;
    cuTexRefSetMipmapLevelClamp 5000 cuTexRefSetMipmapLevelClamp;
    cuTexRefSetMipmappedArray 5000 cuTexRefSetMipmappedArray;
    cuUserObjectCreate 11030 cuUserObjectCreate;
    cuUserObjectRelease 11030 cuUserObjectRelease;
    cuUserObjectRetain 11030 cuUserObjectRetain;
    cuVDPAUCtxCreate 4000 cuVDPAUCtxCreate;
    cuVDPAUGetDevice 4000 cuVDPAUGetDevice;
    cuWaitExternalSemaphoresAsync 10000 cuWaitExternalSemaphoresAsync / 10000 cuWaitExternalSemaphoresAsync_ptsz;
}
