import Foundation

// Not with the formats of Foundation: before Swift 6.2, they refuse either fractions of seconds or texts without them.

extension Date {
    /// Parses a date and time (RFC 3339): `2026-07-28T12:00:00.25Z`, `2026-07-28T14:00:00+02:00`.
    init?(rfc3339 text: String) {
        var parser = DateParser(text)
        guard let time = parser.time() else { return nil }
        self.init(timeIntervalSince1970: time)
    }

    /// The date and time (RFC 3339), with up to six digits of a fraction of seconds; `nil` if the year is not from 0 to 9999.
    var rfc3339: String? {
        let seconds = timeIntervalSince1970
        // From the year 0 to 9999, which also excludes infinities and NaN.
        guard seconds >= -62_167_219_200, seconds < 253_402_300_800 else { return nil }
        let micros = Int((seconds * 1e6).rounded())
        let (days, microsOfDay) = floorDivided(micros, by: 86_400_000_000)
        let (year, month, day) = civilDate(days)
        let second = microsOfDay / 1_000_000
        var text = "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T\(padded(second / 3600, 2))"
        text += ":\(padded(second / 60 % 60, 2)):\(padded(second % 60, 2))"
        var fraction = padded(microsOfDay % 1_000_000, 6)[...]
        while fraction.last == "0" { fraction.removeLast() }
        return fraction.isEmpty ? text + "Z" : text + ".\(fraction)Z"
    }
}

private struct DateParser {
    private let bytes: [UInt8]
    private var position = 0

    init(_ text: String) {
        bytes = Array(text.utf8)
    }

    /// Returns the seconds since 1970.
    mutating func time() -> Double? {
        guard let year = number(4), take("-"), let month = number(2), take("-"), let day = number(2),
            take("T") || take("t") || take(" "),
            let hour = number(2), take(":"), let minute = number(2), take(":"), let second = number(2),
            (1...12).contains(month), day >= 1, day <= daysOfMonth(month, year),
            // The last is a leap second.
            hour <= 23, minute <= 59, second <= 60,
            let fraction = fraction(), let offset = offset(), position == bytes.count
        else { return nil }
        let whole = daysSince1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset
        return Double(whole) + fraction
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard position < bytes.count, bytes[position] == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func digit() -> Int? {
        guard position < bytes.count, bytes[position] >= UInt8(ascii: "0"), bytes[position] <= UInt8(ascii: "9") else {
            return nil
        }
        defer { position += 1 }
        return Int(bytes[position] - UInt8(ascii: "0"))
    }

    private mutating func number(_ digits: Int) -> Int? {
        var number = 0
        for _ in 0..<digits {
            guard let digit = digit() else { return nil }
            number = number * 10 + digit
        }
        return number
    }

    private mutating func fraction() -> Double? {
        guard take(".") else { return 0 }
        guard var numerator = digit().map(Double.init) else { return nil }
        var denominator = 10.0
        while let digit = digit() {
            // A `Date` can't hold more of them.
            guard denominator < 1e12 else { continue }
            numerator = numerator * 10 + Double(digit)
            denominator *= 10
        }
        return numerator / denominator
    }

    /// Returns the seconds that the time is ahead of UTC.
    private mutating func offset() -> Int? {
        if take("Z") || take("z") { return 0 }
        let sign = take("-") ? -1 : 1
        if sign == 1, !take("+") { return nil }
        guard let hours = number(2) else { return nil }
        _ = take(":")
        guard let minutes = number(2), hours <= 23, minutes <= 59 else { return nil }
        return sign * (hours * 3600 + minutes * 60)
    }
}

private func padded(_ number: Int, _ digits: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, digits - text.count)) + text
}

private func floorDivided(_ number: Int, by divisor: Int) -> (quotient: Int, remainder: Int) {
    let (quotient, remainder) = number.quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
}

private func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

private func daysOfMonth(_ month: Int, _ year: Int) -> Int {
    switch month {
    case 2: isLeap(year) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
}

// The two functions count from March of the year 0, so that a leap day is the last of its year. 146,097 days are 400 years.

private func daysSince1970(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let (era, yearOfEra) = floorDivided(month <= 2 ? year - 1 : year, by: 400)
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
}

private func civilDate(_ daysSince1970: Int) -> (year: Int, month: Int, day: Int) {
    let (era, dayOfEra) = floorDivided(daysSince1970 + 719_468, by: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
}
