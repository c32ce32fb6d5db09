// Containers of C++: sorting of records, maps, and regular expressions.
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>

struct Entry {
    int key;
    std::string name;
};

int main(int count, char **arguments)
{
    std::map<std::string, int> sums;
    long total = 0;
    for (int round = count > 1 ? std::stoi(arguments[1]) : 1; round > 0; round--) {
        std::vector<Entry> entries;
        for (int i = 0; i < 20000; i++)
            entries.push_back({rand() % 5000, "k" + std::to_string(rand() % 3000)});
        std::sort(entries.begin(), entries.end(), [](const Entry &one, const Entry &other) {
            return one.key != other.key ? one.key < other.key : one.name < other.name;
        });
        for (auto &entry : entries)
            sums[entry.name] += entry.key;
        auto by_name = [](const Entry &one, const Entry &other) { return one.name < other.name; };
        std::stable_sort(entries.begin(), entries.end(), by_name);
        std::unordered_map<int, int> seen;
        for (auto &entry : entries)
            if (seen[entry.key]++ > 2)
                total++;
        std::regex pattern("k([0-9])2+.*");
        for (int i = 0; i < 400; i++)
            if (std::regex_match(entries[i * 17].name, pattern))
                total += 3;
    }
    std::cout << total << " " << sums.size() << "\n";
}
