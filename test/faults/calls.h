/* SPDX-License-Identifier: GPL-2.0-only */
/* The functions that the injector can make fail: X(name, how it reports failure, its possible
 * faults). */
#ifndef TEST_FAULTS_CALLS_H
#define TEST_FAULTS_CALLS_H

#define CALLS(X)                                                           \
	X(ioctl, ERRNO, "EINTR ENOMEM EINVAL")                             \
	X(open, ERRNO, "EMFILE EACCES ENOMEM EINTR")                       \
	X(openat, ERRNO, "EMFILE EACCES ENOMEM EINTR")                     \
	X(fopen, NULL_ERRNO, "EMFILE EACCES ENOMEM EINTR")                 \
	X(opendir, NULL_ERRNO, "EMFILE EACCES ENOMEM")                     \
	X(fdopendir, NULL_ERRNO, "ENOMEM")                                 \
	X(shm_open, ERRNO, "EMFILE EACCES ENOMEM")                         \
	X(sem_open, NULL_ERRNO, "EMFILE EACCES ENOMEM")                    \
	X(close, ERRNO_DONE, "EIO EINTR ENOSPC")                           \
	X(closedir, ERRNO_DONE, "EIO")                                     \
	X(fclose, EOF_DONE, "EIO")                                         \
	X(read, ERRNO, "EIO EINTR short eof")                              \
	X(pread, ERRNO, "EIO EINTR EINVAL short eof")                      \
	X(preadv2, ERRNO, "EAGAIN EOPNOTSUPP EIO")                         \
	X(write, ERRNO, "EIO EINTR ENOSPC EPIPE short")                    \
	X(pwrite, ERRNO, "EIO EINTR ENOSPC EINVAL short")                  \
	X(fgets, STREAM, "EIO")                                            \
	X(__getdelim, STREAM, "EIO ENOMEM")                                \
	X(getline, STREAM, "EIO ENOMEM")                                   \
	X(__isoc99_fscanf, STREAM, "EIO")                                  \
	X(readdir, NULL_ERRNO, "EIO")                                      \
	X(ftruncate, ERRNO, "EIO EINTR ENOSPC")                            \
	X(fallocate, ERRNO, "EIO EINTR ENOSPC EOPNOTSUPP")                 \
	X(fdatasync, ERRNO, "EIO ENOSPC EINVAL EROFS")                     \
	X(lseek, ERRNO, "EINVAL EIO")                                      \
	X(fcntl, ERRNO, "EMFILE")                                          \
	X(fchmod, ERRNO, "EIO EPERM")                                      \
	X(fstat, ERRNO, "ENOMEM EIO")                                      \
	X(stat, ERRNO, "ENOMEM EACCES")                                    \
	X(fstatat, ERRNO, "ENOMEM EACCES")                                 \
	X(fstatfs, ERRNO, "EIO EINTR")                                     \
	X(fstatvfs, ERRNO, "EIO EINTR")                                    \
	X(posix_fadvise, POSITIVE, "EINVAL")                               \
	X(unlinkat, ERRNO, "EACCES EIO")                                   \
	X(mmap, MAP_ERRNO, "ENOMEM EAGAIN")                                \
	X(mmap64, MAP_ERRNO, "ENOMEM EAGAIN")                              \
	X(munmap, ERRNO_DONE, "ENOMEM")                                    \
	X(madvise, ERRNO, "ENOMEM EINVAL")                                 \
	X(malloc, NULL_ERRNO, "ENOMEM")                                    \
	X(calloc, NULL_ERRNO, "ENOMEM")                                    \
	X(realloc, NULL_ERRNO, "ENOMEM")                                   \
	X(posix_memalign, POSITIVE, "ENOMEM")                              \
	X(strdup, NULL_ERRNO, "ENOMEM")                                    \
	X(free, ERRNO, "")                                                 \
	X(pthread_create, POSITIVE, "EAGAIN")                              \
	X(unshare, ERRNO, "ENOMEM EPERM")                                  \
	X(pthread_cond_timedwait, POSITIVE, "ETIMEDOUT")                   \
	X(nanosleep, ERRNO, "EINTR")                                       \
	X(setrlimit, ERRNO, "EPERM")                                       \
	X(syscall, ERRNO, "ENOSYS EPERM")                                  \
	X(pipe2, ERRNO, "EMFILE ENFILE")                                   \
	X(poll, ERRNO, "EINTR ENOMEM")                                     \
	X(waitid, ERRNO, "EINTR")                                          \
	X(access, ERRNO, "EACCES ENOMEM")                                  \
	X(socketpair, ERRNO, "EMFILE ENOMEM")                              \
	X(setsockopt, ERRNO, "ENOMEM")                                     \
	X(shutdown, ERRNO_DONE, "ENOTCONN")                                \
	X(sendmsg, ERRNO, "EINTR ENOMEM EPIPE ETOOMANYREFS")               \
	X(recvmsg, ERRNO, "EINTR ENOMEM ECONNRESET eof")                   \
	X(drmIoctl, ERRNO, "")                                             \
	X(protobuf_c_message_unpack, NULL_ERRNO, "ENOMEM")                 \
	X(amdgpu_device_initialize, NEGATIVE, "ENOMEM EBADF -1")           \
	X(amdgpu_device_deinitialize, NEGATIVE_DONE, "EINVAL")             \
	X(amdgpu_bo_export, NEGATIVE, "EINVAL ENOMEM")                     \
	X(amdgpu_query_info, NEGATIVE, "ENODEV ENOMEM")                    \
	X(amdgpu_query_hw_ip_info, NEGATIVE, "ENODEV ENOMEM")              \
	X(amdgpu_va_range_alloc, NEGATIVE, "EINVAL ENOMEM")                \
	X(amdgpu_va_range_free, NEGATIVE_DONE, "EINVAL")                   \
	X(amdgpu_bo_va_op, NEGATIVE, "ENOMEM EINVAL ENODEV")               \
	X(amdgpu_bo_alloc, NEGATIVE, "ENOMEM ENODEV")                      \
	X(amdgpu_bo_free, NEGATIVE_DONE, "EINVAL")                         \
	X(amdgpu_bo_cpu_map, NEGATIVE, "ENOMEM EINVAL")                    \
	X(amdgpu_bo_cpu_unmap, NEGATIVE_DONE, "EINVAL")                    \
	X(amdgpu_bo_import, NEGATIVE, "ENOMEM EINVAL -1")                  \
	X(amdgpu_create_bo_from_user_mem, NEGATIVE, "ENOMEM EPERM EFAULT") \
	X(amdgpu_bo_list_create, NEGATIVE, "ENOMEM EINVAL")                \
	X(amdgpu_bo_list_destroy, NEGATIVE_DONE, "EINVAL")                 \
	X(amdgpu_cs_ctx_create, NEGATIVE, "ENOMEM EACCES")                 \
	X(amdgpu_cs_ctx_free, NEGATIVE_DONE, "EINVAL")                     \
	X(amdgpu_cs_submit, NEGATIVE, "ENOMEM ECANCELED ENODEV")           \
	X(amdgpu_cs_query_fence_status, NEGATIVE, "ENODEV ECANCELED")      \
	X(amdgpu_cs_query_reset_state2, NEGATIVE, "ENODEV EINVAL")         \
	X(add_inventory_plugin, ERRNO, "-1")                               \
	X(fdstore_add, ERRNO, "-1")                                        \
	X(fdstore_get, ERRNO, "-1")                                        \
	X(find_unused_fd_pid, ERRNO, "-1")                                 \
	X(img_streamer_open, ERRNO, "-1")                                  \
	X(criu_plugin_get_options, ERRNO, "-1")

/* Each function has a number, CALL_name. */
#define NUMBER(name, answer, faults) CALL_##name,
enum { CALLS(NUMBER) NUM_CALLS };

#endif
