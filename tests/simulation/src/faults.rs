//! What fails, and when.

use std::sync::Arc;
use std::time::Duration;

use crate::world::World;

/// The mean time between two faults of one replica.
const FAULT_INTERVAL_MILLISECONDS: u64 = 30_000;

/// Causes faults until they end.
pub(crate) async fn cause(world: Arc<World>) {
    // A thousand replicas have a thousand times as many.
    let longest = (2 * FAULT_INTERVAL_MILLISECONDS / world.size.replicas).max(1);
    loop {
        world.pause(1, longest).await;
        if !world.has_faults() {
            return;
        }
        let Some(replica) = world.replicas.choose(&world) else {
            continue;
        };
        match world.between(0, 9) {
            // Some replicas always remain, as a supervisor would see to.
            0..=4 if world.replicas.count() * 2 <= world.size.replicas => {}
            0..=2 => {
                world.count(|counts| counts.kills += 1);
                world.replicas.kill(&replica);
                replace(&world);
            }
            3 | 4 => {
                world.count(|counts| counts.shutdowns += 1);
                world.replicas.shut_down(&replica);
                replace(&world);
            }
            5 | 6 => {
                world.count(|counts| counts.partitions += 1);
                let time = Duration::from_millis(world.between(50, 8_000));
                world.trace(format_args!("replica {} is cut off", replica.number));
                replica.link().cut_off(time);
            }
            _ => {
                world.count(|counts| counts.delays += 1);
                let time = Duration::from_millis(world.between(50, 3_000));
                world.trace(format_args!("the bus to {} is late", replica.number));
                replica.link().delay_bus(time);
            }
        }
    }
}

/// Starts another replica a moment later.
fn replace(world: &Arc<World>) {
    let world = world.clone();
    tokio::spawn(async move {
        world.pause(100, 5_000).await;
        world.replicas.start(&world);
    });
}
