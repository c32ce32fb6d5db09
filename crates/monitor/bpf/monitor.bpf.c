// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
//
// Keeps an account of each thread of the watched processes. It holds how long the thread ran,
// waited for a CPU, waited for another thread, and slept. It also counts context switches and
// migrations. `src/ebpf.rs` loads this program, names the processes and reads the accounts.
//
// A thread is always in one state. Its account holds the sum of the time in each state, and a mark.
// The mark is one word: the state, and since when the thread is in it. The sums make up the time
// from `begin` to the mark. A reader may catch an account half written. Then the sums do not add
// up, and it reads again.
//
// A kernel may hide tasks from tracing, for example those of a sandbox. While a hidden task has the
// CPU, nothing that happens there is seen. So a switch from it to a watched thread is not seen
// either. Such a turn shows when it ends. The kernel's own account tells how long it was.
//
// The structures of the kernel below hold only the members that are used. Their offsets are looked
// up when the program is loaded, in the type information of the running kernel (CO-RE). So one
// object serves all kernels since 5.15, on x86-64 and AArch64. `build.sh` builds it.

typedef unsigned int u32;
typedef long long s64;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define RELOCATED __attribute__((preserve_access_index))
#define INLINE static inline __attribute__((always_inline))

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2 };

// bpf-helpers(7); the numbers are part of the kernel's interface.
static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value,
				u64 flags) = (void *)2;
static u64 (*const monotonic_time)(void) = (void *)5;
static u32 (*const processor)(void) = (void *)8;
static long (*const read_kernel)(void *to, u32 size, const void *from) = (void *)113;
struct pt_regs;
static struct pt_regs *(*const registers)(void *task) = (void *)175;

struct sched_entity {
	u64 sum_exec_runtime;
} RELOCATED;

struct task_struct {
	int pid;
	int tgid;
	int on_cpu;
	unsigned int __state;
	struct sched_entity se;
	u64 start_boottime;
	char comm[16];
} RELOCATED;

struct pt_regs___x86 {
	unsigned long orig_ax;
} RELOCATED;

struct pt_regs___arm64 {
	int syscallno;
} RELOCATED;

#define EXISTS(member) __builtin_preserve_field_info(member, 2)
#define TASK_DEAD 0x80

// What a thread does. UNKNOWN: nothing of it has been seen yet.
enum state { UNKNOWN, RUNNING, WAITING, LOCKED, ASLEEP, ENDED };

// The same as `WORDS` in src/ebpf/account.rs.
struct account {
	u64 begin;
	u64 mark; // time << 3 | state
	u64 ran, waited, locked, slept;
	u64 voluntary, involuntary, migrations;
	u64 processor; // plus one; 0: none yet
	u64 id;        // process << 32 | thread
	u64 start;     // ns since boot
	u64 runtime;   // time on a CPU up to the end of its last turn, by the kernel's account
	char comm[16]; // written when the thread begins to end
};

struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	u32 *key;
	struct account *value;
	int (*max_entries)[8192];
} threads SEC(".maps");

// The processes that are watched.
struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	u32 *key;
	u32 *value;
	int (*max_entries)[4096];
} processes SEC(".maps");

// How many new threads or processes found no room.
struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	u32 *key;
	u64 *value;
	int (*max_entries)[1];
} lost SEC(".maps");

INLINE void enter(struct account *account, u64 now, enum state before, enum state next)
{
	u64 mark = account->mark;
	enum state state = mark & 7;
	u64 since = mark >> 3;

	if (state == UNKNOWN)
		state = before;
	// The account may have been made on another CPU just now.
	if (now < since)
		now = since;
	if (state == RUNNING)
		account->ran += now - since;
	else if (state == WAITING)
		account->waited += now - since;
	else if (state == LOCKED)
		account->locked += now - since;
	else
		account->slept += now - since;
	account->mark = now << 3 | next;
}

// The account of a living thread. The number of an ended one may be a stranger's by now.
INLINE struct account *account_of(u32 tid)
{
	// The idle task of each CPU is 0.
	struct account *account = tid ? map_lookup(&threads, &tid) : 0;

	return account && (account->mark & 7) != ENDED ? account : 0;
}

// A turn on this CPU begins.
INLINE void begin(struct account *account, u64 now)
{
	u64 here = processor() + 1;

	if (account->processor != here) {
		if (account->processor)
			account->migrations++;
		account->processor = here;
	}
	enter(account, now, WAITING, RUNNING);
}

// Called before a turn ends. Begins the turn in the account if its beginning was not seen.
// `runtime`: the kernel's account by now.
INLINE void catch_up(struct account *account, u64 now, u64 runtime)
{
	u64 since = account->mark >> 3, ran = runtime - account->runtime;

	if ((account->mark & 7) == RUNNING || now < since)
		return;
	begin(account, ran < now - since ? now - ran : since);
}

// What a thread waits for after it gave up its CPU. The calls futex, futex_waitv and futex_wait
// wait for another thread.
INLINE enum state reason(struct task_struct *task)
{
	struct pt_regs *at = registers(task);
	struct pt_regs___x86 *x86 = (void *)at;
	struct pt_regs___arm64 *arm64 = (void *)at;
	s64 call;

	if (EXISTS(x86->orig_ax)) {
		call = x86->orig_ax;
		if (call == 202)
			return LOCKED;
	} else if (EXISTS(arm64->syscallno)) {
		call = arm64->syscallno;
		if (call == 98)
			return LOCKED;
	} else {
		return ASLEEP;
	}
	return call == 449 || call == 455 ? LOCKED : ASLEEP;
}

// (bool preempt, struct task_struct *prev, struct task_struct *next, ...)
SEC("tp_btf/sched_switch")
int switched(u64 *context)
{
	struct task_struct *before = (void *)context[1], *after = (void *)context[2];
	struct account *left = account_of(before->pid), *came = account_of(after->pid);
	u64 now = 0;

	if (left) {
		u32 state = before->__state;
		u64 runtime = before->se.sum_exec_runtime;
		now = monotonic_time();
		catch_up(left, now, runtime);
		left->runtime = runtime;
		if (context[0] & 1 || !state) {
			left->involuntary++;
			enter(left, now, RUNNING, WAITING);
		} else if (state & TASK_DEAD) {
			left->voluntary++;
			enter(left, now, RUNNING, ENDED);
		} else {
			left->voluntary++;
			enter(left, now, RUNNING, reason(before));
		}
	}
	if (came) {
		if (!now)
			now = monotonic_time();
		begin(came, now);
	}
	return 0;
}

// (struct task_struct *task)
SEC("tp_btf/sched_wakeup")
int woken(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	struct account *account = account_of(task->pid);
	enum state state;

	if (!account)
		return 0;
	state = account->mark & 7;
	// It was woken before it gave up its CPU.
	if (state == RUNNING || state == WAITING || (state == UNKNOWN && task->on_cpu))
		return 0;
	if (state == UNKNOWN)
		account->runtime = task->se.sum_exec_runtime;
	enter(account, monotonic_time(), state == UNKNOWN ? reason(task) : UNKNOWN, WAITING);
	return 0;
}

// A thread or a process found no room.
INLINE void miss(void)
{
	u32 zero = 0;
	u64 *missed = map_lookup(&lost, &zero);

	if (missed)
		__sync_fetch_and_add(missed, 1);
}

// (struct task_struct *parent, struct task_struct *child)
SEC("tp_btf/sched_process_fork")
int forked(u64 *context)
{
	struct task_struct *parent = (void *)context[0], *child = (void *)context[1];
	u32 from = parent->tgid, process = child->tgid, tid = child->pid, zero = 0;
	struct account account = {};
	u64 now;
	long failed = 0;

	if (!map_lookup(&processes, &from))
		return 0;
	if (process != from)
		failed = map_update(&processes, &process, &zero, 0);
	now = monotonic_time();
	account.begin = now;
	account.mark = now << 3 | WAITING;
	account.id = (u64)process << 32 | tid;
	account.start = child->start_boottime;
	account.runtime = child->se.sum_exec_runtime;
	failed |= map_update(&threads, &tid, &account, 0);
	if (failed)
		miss();
	return 0;
}

// (struct task_struct *task, int before, ...)
// The thread may not be the first of its process. Then it has the number of the first from its exec
// on, and no other thread is left. So an account under that number begins, and the one under its
// former number ends.
SEC("tp_btf/sched_process_exec")
int replaced(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	u32 before = context[1], tid = task->pid;
	struct account *old = before == tid ? 0 : account_of(before);
	struct account account = {};
	u64 now, runtime;

	if (!old)
		return 0;
	now = monotonic_time();
	runtime = task->se.sum_exec_runtime;
	catch_up(old, now, runtime);
	enter(old, now, RUNNING, ENDED);
	read_kernel(old->comm, sizeof(old->comm), task->comm);
	account.begin = now;
	account.mark = now << 3 | RUNNING;
	account.processor = processor() + 1;
	account.id = (u64)task->tgid << 32 | tid;
	account.start = task->start_boottime;
	account.runtime = runtime;
	if (map_update(&threads, &tid, &account, 0))
		miss();
	return 0;
}

// (struct task_struct *task, ...)
// A thread that ends leaves /proc before it gives up its CPU for the last time. A reader that no
// longer finds it there finds its name here.
SEC("tp_btf/sched_process_exit")
int ends(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	struct account *account = account_of(task->pid);

	if (account)
		read_kernel(account->comm, sizeof(account->comm), task->comm);
	return 0;
}

// Names the source and the compiler. A test compares this with the source beside the object.
char origin[] SEC("built") = BUILT;

// Tells the kernel that the helpers for its own types may be used (bpf_prog_load(2), license).
char terms[] SEC("license") = "Dual MIT/GPL";
