#!/usr/bin/env python3
"""Writes cuDNN's description of a GPU, with which cuDNN chooses engines for that GPU where there is none.

  python3 tools/cudnn_device.py FILE

The file is the JSON text that cuDNN 9.8 or later gives for CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION; the numbers below
are those of its header cudnn_graph.h. Exit code 1: there is no such cuDNN, or no GPU.
"""
import ctypes
import os
import sys

DEVICE_PROPERTIES = 38  # CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR
DEVICE_ID, JSON_TEXT = 2700, 2702  # CUDNN_ATTR_DEVICEPROP_*
INT32, CHAR = 23, 24  # CUDNN_TYPE_*


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        cudnn = ctypes.CDLL("libcudnn.so.9")
    except OSError as error:
        sys.exit(f"libcudnn.so.9: {error}")
    cudnn.cudnnGetErrorString.restype = ctypes.c_char_p

    def call(name, *arguments):
        status = getattr(cudnn, name)(*arguments)
        if status != 0:
            sys.exit(f"{name}: {cudnn.cudnnGetErrorString(status).decode()}")

    descriptor, device, size = ctypes.c_void_p(), ctypes.c_int32(0), ctypes.c_int64(0)
    call("cudnnBackendCreateDescriptor", DEVICE_PROPERTIES, ctypes.byref(descriptor))
    call("cudnnBackendSetAttribute", descriptor, DEVICE_ID, INT32, ctypes.c_int64(1), ctypes.byref(device))
    call("cudnnBackendFinalize", descriptor)
    call("cudnnBackendGetAttribute", descriptor, JSON_TEXT, CHAR, ctypes.c_int64(0), ctypes.byref(size), None)
    text = ctypes.create_string_buffer(size.value)
    call("cudnnBackendGetAttribute", descriptor, JSON_TEXT, CHAR, size, ctypes.byref(size), text)
    call("cudnnBackendDestroyDescriptor", descriptor)
    with open(sys.argv[1] + ".new", "wb") as file:
        file.write(text.raw[: size.value].rstrip(b"\0"))
    os.replace(sys.argv[1] + ".new", sys.argv[1])
    print(f"{sys.argv[1]}: {size.value} characters")


if __name__ == "__main__":
    main()
