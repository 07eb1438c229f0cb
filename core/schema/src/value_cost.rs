//! The cost of reading values.

use serde_json::Value;

use crate::budget::StepBudget;

/// Charges the cost of reading a value and everything in it; `None` if the budget does not suffice.
pub(crate) fn charge_value(value: &Value, budget: &mut StepBudget<'_>) -> Option<()> {
    match value {
        Value::String(text) => budget.charge_bytes(text.len()),
        Value::Array(items) => {
            budget.charge(1)?;
            items.iter().try_for_each(|item| charge_value(item, budget))
        }
        Value::Object(members) => {
            budget.charge(1)?;
            members.iter().try_for_each(|(name, member)| {
                budget.charge_bytes(name.len())?;
                charge_value(member, budget)
            })
        }
        _ => budget.charge(1),
    }
}
