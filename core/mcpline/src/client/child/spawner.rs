//! The thread that starts all children, and the watchdog that kills them if this process is killed.
//!
//! On Linux a child requests SIGKILL for its parent's death. That signal is bound to the *thread* that started it, so
//! one permanent thread starts all children. It also reaches the child only, not its descendants. Therefore, on every
//! Unix, a small shell in its own process group holds the read end of a pipe whose write end is ours. We send it the
//! process groups of our children; when the pipe closes, however this process ended, it kills the remaining ones. It
//! exits with the last child.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};

use rustix::process::Pid;
use tokio::process::Child as Process;
use tokio::sync::oneshot;

use super::command::Command;

/// Reads `add GROUP` and `del GROUP`, and kills the remaining groups at the end. Ignores the signals with which a
/// terminal or service manager stops a whole group or session, because it must outlive our pipe.
const WATCHER: &str = r#"
trap '' HUP INT QUIT TERM
groups=' '
while read -r verb group; do
  case $verb in
    add) groups="$groups$group " ;;
    del) groups="${groups%% $group *} ${groups#* $group }" ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done 2>/dev/null
"#;

enum SpawnerCommand {
    Spawn(
        Box<Command>,
        tokio::runtime::Handle,
        oneshot::Sender<io::Result<Process>>,
    ),
    Forget(Pid),
}

/// Starts a child with pipes for stdin and stdout.
pub(super) async fn spawn(command: Command) -> io::Result<Process> {
    let (answer, started) = oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    order(SpawnerCommand::Spawn(Box::new(command), runtime, answer))?;
    started.await.unwrap_or_else(|_| {
        Err(io::Error::other(
            "the thread that starts child processes has ended",
        ))
    })
}

/// Removes a process group that has ended from the watchdog.
pub(super) fn forget(group: Pid) {
    // Without the thread there is no watchdog either.
    let _ = order(SpawnerCommand::Forget(group));
}

fn order(order: SpawnerCommand) -> io::Result<()> {
    static SPAWNER: Mutex<Option<ProcessSpawner>> = Mutex::new(None);
    let mut spawner = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    // After a fork the new process lacks the thread and starts its own.
    if spawner
        .as_ref()
        .is_none_or(|spawner| spawner.process != process)
    {
        *spawner = Some(ProcessSpawner::start()?);
    }
    let sent = spawner.as_ref().map(|spawner| spawner.orders.send(order));
    match sent {
        Some(Ok(())) => Ok(()),
        _ => Err(io::Error::other(
            "the thread that starts child processes has ended",
        )),
    }
}

struct ProcessSpawner {
    orders: mpsc::Sender<SpawnerCommand>,
    process: u32,
}

impl ProcessSpawner {
    fn start() -> io::Result<Self> {
        let (orders, received) = mpsc::channel();
        std::thread::Builder::new()
            .name("mcpline-spawn".to_owned())
            .spawn(move || serve(&received))?;
        Ok(Self {
            orders,
            process: std::process::id(),
        })
    }
}

fn serve(orders: &mpsc::Receiver<SpawnerCommand>) {
    let mut watcher = Watchdog::default();
    while let Ok(order) = orders.recv() {
        match order {
            SpawnerCommand::Spawn(command, runtime, answer) => {
                let started = start(&command, &runtime);
                if let Ok(process) = &started
                    && let Some(id) = process.id()
                {
                    watcher.add(id);
                }
                if let Err(Ok(process)) = answer.send(started) {
                    // The caller is gone: dropping the process kills it.
                    let id = process.id();
                    drop(process);
                    if let Some(id) = id {
                        watcher.remove(id);
                    }
                }
            }
            SpawnerCommand::Forget(group) => {
                watcher.remove(group.as_raw_nonzero().get().cast_unsigned())
            }
        }
    }
}

fn start(command: &Command, runtime: &tokio::runtime::Handle) -> io::Result<Process> {
    let mut std = command.to_std()?;
    std.process_group(0);
    mcpline_process::die_with_parent(&mut std);
    mcpline_process::close_other_descriptors(&mut std);
    let _entered = runtime.enter();
    tokio::process::Command::from(std)
        .kill_on_drop(true)
        .spawn()
}

/// The watchdog process, running while there are children.
#[derive(Default)]
struct Watchdog {
    running: Option<(Child, ChildStdin)>,
    groups: BTreeSet<u32>,
}

impl Watchdog {
    fn add(&mut self, group: u32) {
        self.groups.insert(group);
        if self.running.is_none() {
            match watch() {
                Ok(running) => self.running = Some(running),
                Err(error) => {
                    tracing::warn!("cannot start the watchdog of child processes: {error}");
                    return;
                }
            }
        }
        self.send_command("add", group);
    }

    fn remove(&mut self, group: u32) {
        if !self.groups.remove(&group) {
            return;
        }
        self.send_command("del", group);
        if self.groups.is_empty()
            && let Some((mut child, stdin)) = self.running.take()
        {
            drop(stdin);
            // It has nothing to kill and exits at once.
            let _ = child.wait();
        }
    }

    fn send_command(&mut self, verb: &str, group: u32) {
        if let Some((_, stdin)) = &mut self.running
            && let Err(error) = writeln!(stdin, "{verb} {group}")
        {
            tracing::warn!("the watchdog of child processes ended: {error}");
        }
    }
}

fn watch() -> io::Result<(Child, ChildStdin)> {
    let mut shell = std::process::Command::new("/bin/sh");
    // It would keep sockets and pipes of the program open.
    mcpline_process::close_other_descriptors(&mut shell);
    let mut child = shell
        .args(["-c", WATCHER])
        .process_group(0)
        .current_dir("/")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let stdin = child.stdin.take();
    let stdin = stdin.ok_or_else(|| io::Error::other("the watcher has no stdin"))?;
    Ok((child, stdin))
}
