/**
 * Converts a title to a URL slug.
 * @param {string} title
 */
export const slug = title => title.toLowerCase().replace(' ', '-');
